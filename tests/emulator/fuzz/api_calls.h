/* The calls of api.c: name, whether argument a is a handle, and the call, whose arguments come from the bytes of k. */
#ifndef EMU_FUZZ_API_CALLS_H
#define EMU_FUZZ_API_CALLS_H

#define DEVICE(n) ((CUdevice)((n) % 7) - 1)

/* One row per call. */
/* clang-format off */
#define API_CALLS(X) \
    X(ctx_create, false, cuCtxCreate_v2(OUT(contexts, k->a), (unsigned)PICK(numbers, k->b), DEVICE(k->c))) \
    X(ctx_create_0, false, cuCtxCreate_v2(OUT(contexts, k->a), 0, 0)) \
    X(ctx_destroy, true, cuCtxDestroy_v2(IN(contexts, k->a))) \
    X(ctx_push, true, cuCtxPushCurrent_v2(IN(contexts, k->a))) \
    X(ctx_pop, false, cuCtxPopCurrent_v2(NULL_OR(k->a, &out.context))) \
    X(ctx_set, true, cuCtxSetCurrent(IN(contexts, k->a))) \
    X(ctx_get, false, cuCtxGetCurrent(NULL_OR(k->a, &out.context))) \
    X(ctx_device, false, cuCtxGetDevice(NULL_OR(k->a, &out.device))) \
    X(ctx_flags, false, cuCtxGetFlags(NULL_OR(k->a, &out.u))) \
    X(ctx_sync, false, cuCtxSynchronize()) \
    X(ctx_version, true, cuCtxGetApiVersion(IN(contexts, k->a), NULL_OR(k->b, &out.u))) \
    X(ctx_limit, false, cuCtxSetLimit(PICK(numbers, k->a), PICK(sizes, k->b))) \
    X(ctx_get_limit, false, cuCtxGetLimit(NULL_OR(k->b, &out.size), PICK(numbers, k->a))) \
    X(ctx_config, false, cuCtxSetCacheConfig(PICK(numbers, k->a))) \
    X(primary_retain, false, cuDevicePrimaryCtxRetain(OUT(contexts, k->a), DEVICE(k->b))) \
    X(primary_release, false, cuDevicePrimaryCtxRelease_v2(DEVICE(k->a))) \
    X(primary_reset, false, cuDevicePrimaryCtxReset_v2(DEVICE(k->a))) \
    X(primary_flags, false, cuDevicePrimaryCtxSetFlags_v2(DEVICE(k->a), (unsigned)PICK(numbers, k->b))) \
    X(primary_state, false, cuDevicePrimaryCtxGetState(DEVICE(k->a), NULL_OR(k->b, &out.u), NULL_OR(k->c, &out.i))) \
    X(device_name, false, cuDeviceGetName(NULL_OR(k->b, out.bytes), k->c % 65 - 1, DEVICE(k->a))) \
    X(device_bus, false, cuDeviceGetPCIBusId(NULL_OR(k->b, out.bytes), k->c % 65 - 1, DEVICE(k->a))) \
    X(device_attribute, false, cuDeviceGetAttribute(NULL_OR(k->b, &out.i), k->c - 3, DEVICE(k->a))) \
    X(device_uuid, false, cuDeviceGetUuid_v2(NULL_OR(k->b, &out.uuid), DEVICE(k->a))) \
    X(device_bytes, false, cuDeviceTotalMem_v2(NULL_OR(k->b, &out.size), DEVICE(k->a))) \
    X(module_load, false, load(k)) \
    X(module_load_0, false, cuModuleLoadData(OUT(modules, k->a), GOOD)) \
    X(module_file, false, cuModuleLoad(OUT(modules, k->a), NULL_OR(k->b, PICK(names, k->c)))) \
    X(module_unload, true, cuModuleUnload(IN(modules, k->a))) \
    X(module_function, true, cuModuleGetFunction(OUT(functions, k->b), IN(modules, k->a), NULL_OR(k->c, \
      PICK(names, k->d)))) \
    X(module_function_0, true, cuModuleGetFunction(OUT(functions, k->b), IN(modules, k->a), "k")) \
    X(module_count, true, cuModuleGetFunctionCount(NULL_OR(k->b, &out.u), IN(modules, k->a))) \
    X(module_global, true, cuModuleGetGlobal_v2(OUT(addresses, k->b), NULL_OR(k->c, &out.size), IN(modules, \
      k->a), PICK(names, k->d))) \
    X(func_get, true, cuFuncGetAttribute(NULL_OR(k->b, &out.i), PICK(numbers, k->c), IN(functions, k->a))) \
    X(func_set, true, cuFuncSetAttribute(IN(functions, k->a), PICK(numbers, k->b), PICK(numbers, k->c))) \
    X(func_config, true, cuFuncSetCacheConfig(IN(functions, k->a), PICK(numbers, k->b))) \
    X(func_module, true, cuFuncGetModule(OUT(modules, k->b), IN(functions, k->a))) \
    X(func_name, true, cuFuncGetName(NULL_OR(k->b, &out.text), IN(functions, k->a))) \
    X(occupancy, true, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(NULL_OR(k->b, &out.i), \
      IN(functions, k->a), (int)PICK(dimensions, k->c), PICK(sizes, k->d), k->b % 3)) \
    X(link_create, false, cuLinkCreate_v2(0, NULL, NULL, NULL)) \
    X(launch, true, launch(k)) \
    X(launch_0, true, cuLaunchKernel(IN(functions, k->a), 1, 1, 1, 1, 1, 1, 0, IN(streams, k->b), \
      (void *[]){&addresses[k->c % SLOTS], host}, NULL)) \
    X(launch_ex, true, launch_ex(k)) \
    X(launch_together, true, (cuLaunchCooperativeKernel(IN(functions, k->a), 1, 1, 1, 1, 1, 1, 0, \
      IN(streams, k->b), NULL))) \
    X(launch_host, true, cuLaunchHostFunc(IN(streams, k->a), NULL_OR(k->b, count_call), &called)) \
    X(callback, true, cuStreamAddCallback(IN(streams, k->a), NULL_OR(k->b, count_callback), &called, k->c % 9 == 8)) \
    X(mem_alloc, false, cuMemAlloc_v2(OUT(addresses, k->a), PICK(sizes, k->b))) \
    X(mem_alloc_0, false, cuMemAlloc_v2(OUT(addresses, k->a), 4096)) \
    X(mem_managed, false, cuMemAllocManaged(OUT(addresses, k->a), PICK(sizes, k->b), k->c % 4)) \
    X(mem_pitch, false, cuMemAllocPitch_v2(OUT(addresses, k->a), NULL_OR(k->d, &out.size), PICK(sizes, \
      k->b), PICK(sizes, k->c), (unsigned)PICK(numbers, k->d))) \
    X(mem_free, true, cuMemFree_v2(is_invented(k->a) ? address_at(k->a) | 1 : address_at(k->a))) \
    X(mem_alloc_async, false, cuMemAllocAsync(OUT(addresses, k->a), PICK(sizes, k->b), IN(streams, k->c))) \
    X(mem_free_async, false, cuMemFreeAsync(address_at(k->a), IN(streams, k->b))) \
    X(mem_host, false, cuMemHostAlloc(OUT(hosts, k->a), PICK(sizes, k->b), k->c % 9)) \
    X(mem_free_host, true, cuMemFreeHost(IN(hosts, k->a))) \
    X(mem_host_device, true, cuMemHostGetDevicePointer_v2(OUT(addresses, k->b), IN(hosts, k->a), k->c % 9 == 8)) \
    X(mem_host_flags, true, cuMemHostGetFlags(NULL_OR(k->b, &out.u), IN(hosts, k->a))) \
    X(mem_range, false, cuMemGetAddressRange_v2(OUT(shadows, k->b), NULL_OR(k->c, &out.size), address_at(k->a))) \
    X(mem_info, false, cuMemGetInfo_v2(NULL_OR(k->a, &out.size), NULL_OR(k->b, &total))) \
    X(pointer, false, cuPointerGetAttribute(NULL_OR(k->c, out.bytes), k->b % 20, address_at(k->a))) \
    X(copy_to_host, false, copy_to_host(k)) \
    X(copy_from_host, false, copy_from_host(k)) \
    X(copy, false, cuMemcpyDtoDAsync_v2(address_at(k->a), address_at(k->b), PICK(sizes, k->c), IN(streams, k->d))) \
    X(set_8, false, cuMemsetD8Async(address_at(k->a), k->b, PICK(sizes, k->c), IN(streams, k->d))) \
    X(set_16, false, cuMemsetD16Async(address_at(k->a), k->b, PICK(sizes, k->c), IN(streams, k->d))) \
    X(set_32, false, cuMemsetD32Async(address_at(k->a), k->b, PICK(sizes, k->c), IN(streams, k->d))) \
    X(stream_create, false, cuStreamCreateWithPriority(OUT(streams, k->a), k->b % 3, PICK(numbers, k->c))) \
    X(stream_create_0, false, cuStreamCreate(OUT(streams, k->a), 1)) \
    X(stream_destroy, true, cuStreamDestroy_v2(IN(streams, k->a))) \
    X(stream_sync, true, cuStreamSynchronize(IN(streams, k->a))) \
    X(stream_query, true, cuStreamQuery(IN(streams, k->a))) \
    X(stream_wait, true, cuStreamWaitEvent(IN(streams, k->a), IN(events, k->b), k->c % 3)) \
    X(stream_context, true, cuStreamGetCtx(IN(streams, k->a), NULL_OR(k->b, &out.context))) \
    X(stream_flags, true, cuStreamGetFlags(IN(streams, k->a), NULL_OR(k->b, &out.u))) \
    X(stream_priority, true, cuStreamGetPriority(IN(streams, k->a), NULL_OR(k->b, &out.i))) \
    X(event_create, false, cuEventCreate(OUT(events, k->a), k->b % 9)) \
    X(event_destroy, true, cuEventDestroy_v2(IN(events, k->a))) \
    X(event_record, true, cuEventRecordWithFlags(IN(events, k->a), IN(streams, k->b), k->c % 3)) \
    X(event_sync, true, cuEventSynchronize(IN(events, k->a))) \
    X(event_query, true, cuEventQuery(IN(events, k->a))) \
    X(event_elapsed, true, cuEventElapsedTime(NULL_OR(k->c, &out.f), IN(events, k->a), IN(events, k->b))) \
    X(capture_begin, true, cuStreamBeginCapture_v2(IN(streams, k->a), k->b % 5 - 1)) \
    X(capture_end, true, cuStreamEndCapture(IN(streams, k->a), OUT(graphs, k->b))) \
    X(capture_is, true, cuStreamIsCapturing(IN(streams, k->a), NULL_OR(k->b, &out.i))) \
    X(capture_mode, false, exchange_mode(k)) \
    X(graph_create, false, cuGraphCreate(OUT(graphs, k->a), k->b % 9 == 8)) \
    X(graph_destroy, true, cuGraphDestroy(IN(graphs, k->a))) \
    X(graph_nodes, true, nodes(k)) \
    X(graph_instantiate, true, cuGraphInstantiateWithFlags(OUT(execs, k->b), IN(graphs, k->a), k->c % 17)) \
    X(graph_launch, true, cuGraphLaunch(IN(execs, k->a), IN(streams, k->b))) \
    X(graph_upload, true, cuGraphUpload(IN(execs, k->a), IN(streams, k->b))) \
    X(exec_destroy, true, cuGraphExecDestroy(IN(execs, k->a))) \
    X(error_text, false, error_text(k)) \
    X(address_of, false, cuGetProcAddress_v2(NULL_OR(k->a, PICK(names, k->b)), NULL_OR(k->c, \
      &out.function), 13000, 0, NULL_OR(k->d, &out.i)))
/* clang-format on */

#endif
