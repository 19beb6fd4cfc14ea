/* The runtime for C++17: a status that is not forgotten, and a driver and a loader that close themselves.
 *
 * A thin layer over kiln.h, which is the reference: no heap, no exceptions and no run-time type information are needed. The
 * generated header's functions take a kiln::loader where they take a kiln_loader *.
 *
 *     #include <kiln/kiln.hpp>
 *     #include "appkernels.h"
 *
 *     kiln::driver driver;                                  the order matters: the loader is destroyed first
 *     kiln::storage<APPKERNELS_SLOTS> storage;
 *     kiln::loader loader;
 *
 *     kiln::status s = driver.load();                       libcuda.so.1
 *     if (s)
 *         s = driver.set_device();                          the primary context of device 0
 *     if (s)
 *         s = loader.open(storage, driver, appkernels_bundle);
 *     if (s)
 *         s = appkernels_nf4_quantize(loader, stream, args);
 *     char text[256];
 *     if (!s)
 *         std::puts(kiln::describe(text, s, driver, loader));
 */
#ifndef KILN_KILN_HPP
#define KILN_KILN_HPP

#include <string.h>

#include <mutex>

#include <kiln/kiln.h>

namespace kiln {

class driver;
class memory;
class loader;
template <size_t Slots, size_t Contexts> class loaders;

/* The result of a function. True for KILN_OK. */
class [[nodiscard]] status {
  public:
    constexpr status() noexcept = default;
    constexpr status(kiln_status code) noexcept : code_(code)
    {
    } /* implicit: functions return kiln_status */

    constexpr bool ok() const noexcept
    {
        return code_ == KILN_OK;
    }
    constexpr explicit operator bool() const noexcept
    {
        return ok();
    }
    constexpr kiln_status code() const noexcept
    {
        return code_;
    }
    const char *text() const noexcept
    {
        return kiln_status_string(code_);
    } /* static */

    friend constexpr bool operator==(status a, status b) noexcept
    {
        return a.code_ == b.code_;
    }
    friend constexpr bool operator!=(status a, status b) noexcept
    {
        return a.code_ != b.code_;
    }

  private:
    friend driver;
    friend memory;
    template <size_t Slots, size_t Contexts> friend class loaders;
    template <size_t Bytes>
    friend const char *describe(char (&text)[Bytes], status failed, const driver &driver,
                                const loader &loader) noexcept;

    /* Where a failure's details are: in the loader, nowhere, or in the driver, which numbers its failures from of_driver on and
     * has the details of the last one. */
    static constexpr unsigned of_loader = 0, of_none = 1, of_driver = 2;
    constexpr status(kiln_status code, unsigned details) noexcept : code_(code), details_(details)
    {
    }

    kiln_status code_ = KILN_OK;
    unsigned details_ = of_loader;
};

/* The driver's table. It cannot be moved, since loaders refer to it, and must outlive them. */
class driver {
  public:
    driver() noexcept = default;
    ~driver()
    {
        close();
    }
    driver(const driver &) = delete;
    driver &operator=(const driver &) = delete;

    /* As kiln_driver_load; closes a library that was loaded before. After DRIVER_NOT_FOUND dlerror() gives
     * the dynamic linker's reason. */
    status load(const char *path = nullptr, const char **missing_symbol = nullptr) noexcept
    {
        close();
        const char *missing{};
        const status loaded = kiln_driver_load(&table_, path, &missing);
        if (missing_symbol)
            *missing_symbol = missing;
        if (!loaded)
            return fail(loaded.code(), missing ? missing : path ? path : "libcuda.so.1", 0);
        return loaded;
    }
    void close() noexcept
    {
        kiln_driver_close(&table_);
    }

    /* Returns the result of a driver call as a status: driver.check("cuInit", driver->init(0)). */
    status check(const char *call, int result) noexcept
    {
        return result == 0 ? KILN_OK : fail(KILN_ERROR_DRIVER, call, result);
    }

    /* Makes the device's primary context current on this thread, as cudaSetDevice does, and keeps it for as long as the
     * process lives. For threads that no other library has given a context. */
    status set_device(int ordinal = 0) noexcept
    {
        CUcontext before{}, primary{};
        int device{};
        status done = check("cuInit", table_.init(0));
        if (done)
            done = check("cuDeviceGet", table_.device_get(&device, ordinal));
        if (done)
            done = check("cuCtxGetCurrent", table_.ctx_get_current(&before));
        if (done)
            done = check("cuDevicePrimaryCtxRetain", table_.device_primary_ctx_retain(&primary, device));
        if (done && before != primary)
            return check("cuCtxSetCurrent", table_.ctx_set_current(primary));
        return done ? check("cuDevicePrimaryCtxRelease", table_.device_primary_ctx_release(device)) : done;
    }

    /* Returns the status of the most recent failure of load or check. */
    status failure() const noexcept
    {
        return failure_;
    }
    /* Writes that failure's line of text, cut to the array, and returns the array. "" if nothing failed. */
    template <size_t Bytes> const char *describe(char (&text)[Bytes]) const noexcept
    {
        kiln_error error{};
        error.status = failure_.code();
        error.subject = subject_;
        text[0] = '\0';
        if (failure_ == KILN_ERROR_DRIVER)
            (void)kiln_describe_driver(&table_, subject_, result_, text, Bytes);
        else if (!failure_)
            (void)kiln_describe_error(nullptr, &error, nullptr, text, Bytes);
        return text;
    }

    const kiln_driver *get() const noexcept
    {
        return &table_;
    }
    const kiln_driver *operator->() const noexcept
    {
        return &table_;
    } /* driver->mem_alloc(...) */
    operator const kiln_driver &() const noexcept
    {
        return table_;
    }

  private:
    template <size_t Bytes>
    friend const char *describe(char (&text)[Bytes], status failed, const driver &driver,
                                const loader &loader) noexcept;

    status fail(kiln_status code, const char *subject, int result) noexcept
    {
        const unsigned last = failure_.details_;
        failure_ = status{code, last < status::of_driver ? status::of_driver : last + 1};
        result_ = result;
        subject_[0] = '\0';
        if (subject)
            strncat(subject_, subject, sizeof subject_ - 1);
        return failure_;
    }

    kiln_driver table_{};
    status failure_;
    int result_ = 0;
    char subject_[256] = ""; /* a copy of the path, the entry point or the call */
};

/* The memory of one loader: NAME_SLOTS for a bundle. It cannot be moved, and must outlive the loader. */
template <size_t Slots> struct storage {
    storage() noexcept = default;
    storage(const storage &) = delete;
    storage &operator=(const storage &) = delete;

    kiln_loader loader{};
    kiln_slot slots[Slots > 0 ? Slots : 1]{};
};

/* A loader in the caller's memory. The destructor closes it. The loader can be moved; its memory cannot. */
class loader {
  public:
    loader() noexcept = default;
    ~loader()
    {
        (void)close();
    }
    loader(loader &&from) noexcept : at_(from.at_), is_open_(from.is_open_)
    {
        from.let_go();
    }
    /* Closes this object's loader. If that fails because its context is not current, `from` gets it. */
    loader &operator=(loader &&from) noexcept
    {
        if (this != &from) {
            (void)close();
            kiln_loader *const left = is_open_ ? at_ : nullptr;
            at_ = from.at_;
            is_open_ = from.is_open_;
            from.at_ = left;
            from.is_open_ = left != nullptr;
        }
        return *this;
    }

    /* As kiln_open. ALREADY_OPEN if this loader is open. */
    template <size_t Slots>
    status open(storage<Slots> &memory, const kiln_driver &driver, const kiln_bundle &bundle,
                const kiln_options *options = nullptr) noexcept
    {
        return open(memory.loader, memory.slots, Slots, driver, bundle, options);
    }
    status open(kiln_loader &memory, kiln_slot *slots, size_t slot_count, const kiln_driver &driver,
                const kiln_bundle &bundle, const kiln_options *options = nullptr) noexcept
    {
        if (is_open_)
            return kiln_fail(at_, KILN_ERROR_ALREADY_OPEN, bundle.name, "");
        at_ = &memory;
        const status opened = kiln_open(at_, &driver, &bundle, slots, slot_count, options);
        is_open_ = opened.ok();
        return opened;
    }

    /* As kiln_close: the loader's context must be current, also when the destructor runs. If another context
     * is current, the loader stays open. */
    status close() noexcept
    {
        if (!is_open_)
            return KILN_OK;
        const status closed = kiln_close(at_);
        is_open_ = at_->state != 0;
        return closed;
    }
    /* As kiln_forget: for a loader whose context is gone. */
    void forget() noexcept
    {
        kiln_forget(at_);
        is_open_ = false;
    }

    bool is_open() const noexcept
    {
        return is_open_;
    }
    kiln_loader *get() const noexcept
    {
        return at_;
    }
    operator kiln_loader *() const noexcept
    {
        return at_;
    } /* null before open: functions return NULL_POINTER */

    /* As kiln_preload. */
    status preload(const kiln_kernel *const *kernels, size_t count) noexcept
    {
        return kiln_preload(at_, kernels, count);
    }
    /* As kiln_preload, for all kernels of a bundle that the device can run. */
    status preload(const kiln_index &index) noexcept
    {
        status loaded = kiln_preload(at_, nullptr, 0); /* fails if the loader is not open */
        for (uint32_t i = 0; loaded && i < index.bundle->kernel_count; i++)
            if (kiln_usable(at_, index.kernels[i]))
                loaded = kiln_preload(at_, &index.kernels[i], 1);
        return loaded;
    }

    /* The most recent failure; works on a closed loader too. */
    kiln_error last_error() const noexcept
    {
        kiln_error error{};
        error.subject = error.detail = "";
        (void)kiln_last_error(at_, &error); /* null: nothing is written */
        return error;
    }
    /* Writes the last error's line of text, cut to the array, and returns the array. "" if nothing failed;
     * "the loader is not open" before open. */
    template <size_t Bytes>
    const char *describe(char (&text)[Bytes], const kiln_kernel *kernel = nullptr) const noexcept
    {
        kiln_error error = last_error();
        text[0] = '\0';
        if (!at_)
            error.status = KILN_ERROR_CLOSED;
        if (error.status != KILN_OK)
            (void)kiln_describe_error(at_, &error, kernel, text, Bytes);
        return text;
    }

  private:
    void let_go() noexcept
    {
        at_ = nullptr;
        is_open_ = false;
    }

    kiln_loader *at_ = nullptr;
    bool is_open_ = false;
};

/* Device memory that the destructor frees. The driver must then still be loaded, and the context of the memory must be
 * current. */
class memory {
  public:
    memory() noexcept = default;
    ~memory()
    {
        free();
    }
    memory(const memory &) = delete;
    memory &operator=(const memory &) = delete;

    /* Frees the old memory, then allocates as cuMemAlloc does. 0 bytes count as 1, so that the address is not null. */
    status allocate(driver &driver, size_t bytes) noexcept
    {
        free();
        driver_ = &driver;
        return driver.check("cuMemAlloc", driver->mem_alloc(&address_, bytes ? bytes : 1));
    }
    /* Allocates, and copies these bytes from the host. */
    status upload(driver &driver, const void *from, size_t bytes) noexcept
    {
        const status allocated = allocate(driver, bytes);
        return allocated ? driver.check("cuMemcpyHtoD", driver->memcpy_htod(address_, from, bytes))
                         : allocated;
    }
    /* Allocates, and sets all bytes to 0. */
    status zeros(driver &driver, size_t bytes) noexcept
    {
        const status allocated = allocate(driver, bytes);
        return allocated ? driver.check("cuMemsetD8", driver->memset_d8(address_, 0, bytes)) : allocated;
    }
    /* Copies to the host, as cuMemcpyDtoH does: after the null stream's work. NULL_POINTER before allocate. */
    status download(void *to, size_t bytes) const noexcept
    {
        if (!driver_)
            return {KILN_ERROR_NULL_POINTER, status::of_none};
        return driver_->check("cuMemcpyDtoH", (*driver_)->memcpy_dtoh(to, address_, bytes));
    }
    void free() noexcept
    {
        if (address_)
            (void)(*driver_)->mem_free(address_);
        address_ = 0;
    }
    CUdeviceptr address() const noexcept
    {
        return address_;
    }

  private:
    driver *driver_ = nullptr;
    CUdeviceptr address_ = 0;
};

/* A bundle inside a plugin or an operator, which a framework calls on its own threads and in its own contexts: one driver, and a
 * loader for each context, opened on first use.
 *
 *     static kiln::loaders<APPKERNELS_SLOTS> loaders{appkernels_bundle};
 *     kiln::loader *loader{};
 *     kiln::status s = loaders.current(loader);
 *     if (s)
 *         s = appkernels_nf4_quantize(*loader, stream, args);
 *
 * The contexts must live as long as this object, as primary contexts do. The destructor calls no driver function, because at
 * the end of a process the contexts may be gone: it forgets its loaders. */
template <size_t Slots, size_t Contexts = 16> class loaders {
  public:
    explicit loaders(const kiln_bundle &bundle, const char *driver_path = nullptr) noexcept
        : bundle_(bundle), driver_path_(driver_path)
    {
    }
    ~loaders()
    {
        for (entry &at : entries_)
            if (at.loader.is_open())
                at.loader.forget();
    }
    loaders(const loaders &) = delete;
    loaders &operator=(const loaders &) = delete;

    /* Loads the driver, once. Any thread may call it. */
    status load() noexcept
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        return driver_->library ? status{} : driver_.load(driver_path_);
    }
    /* Sets `loader` to the loader of the context that is current on this thread. Any thread may call it. After a failure
     * `loader` is set too, for kiln::describe. TOO_FEW_SLOTS: more than Contexts contexts; NO_CONTEXT; the failures of load
     * and kiln_open. */
    status current(kiln::loader *&loader) noexcept
    {
        CUcontext context{};
        loader = &entries_[0].loader;
        status done = load();
        if (!done)
            return done;
        const std::lock_guard<std::mutex> lock(mutex_);
        done = driver_.check("cuCtxGetCurrent", driver_->ctx_get_current(&context));
        if (!done)
            return done;
        for (entry &at : entries_) {
            loader = &at.loader;
            if (!loader->is_open())
                return loader->open(at.storage, driver_, bundle_);
            if (at.storage.loader.context == context)
                return KILN_OK;
        }
        return {KILN_ERROR_TOO_FEW_SLOTS, status::of_none};
    }
    kiln::driver &driver() noexcept
    {
        return driver_;
    }

  private:
    struct entry {
        kiln::storage<Slots> storage;
        kiln::loader loader;
    };
    const kiln_bundle &bundle_;
    const char *const driver_path_;
    kiln::driver driver_;
    entry entries_[Contexts];
    std::mutex mutex_;
};

/* Writes a line of text about a status, and returns the array. The line has the driver's details if this is the driver's last
 * failure, or the loader's if its last failure has this status. Otherwise it is the text of the status only: for a success, for
 * a failure that neither recorded, and for a failure of the driver that a later one replaced or that was stored as a
 * kiln_status. */
template <size_t Bytes>
const char *describe(char (&text)[Bytes], status failed, const driver &driver, const loader &loader) noexcept
{
    if (failed.details_ >= status::of_driver && failed.details_ == driver.failure_.details_)
        return driver.describe(text);
    if (!failed && failed.details_ == status::of_loader && loader.last_error().status == failed.code())
        return loader.describe(text);
    text[0] = '\0';
    strncat(text, failed.text(), Bytes - 1);
    return text;
}

} /* namespace kiln */

#endif
