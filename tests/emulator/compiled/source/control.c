/* Control flow: loops, switches, early ends, divergence in divergence, calls. */
#include "device.h"

KERNEL(control_nested, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t r = 1;
    if (a[i] & 1) {
        if (b[i] & 1)
            r = a[i] & 2 ? b[i] * 3 : b[i] + 3;
        else if (b[i] & 4)
            r = a[i] ^ 0x55;
        r += LANE;
    } else {
        for (uint32_t k = 0; k < (b[i] & 7); k++)
            r = a[i] & 1u << k ? r * 5 + k : r - k;
    }
    out[i] = r;
}

KERNEL(control_early_end, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    out[i] = 1;
    if (a[i] % 3 == 0)
        return;
    out[i] = 2;
    if (b[i] % 5 < 2)
        return;
    out[i] = a[i] + b[i];
}

KERNEL(control_switch_dense, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t x = a[i];
    switch (b[i] % 12) {
    case 0:
        x += 17;
        break;
    case 1:
        x *= 3;
        break;
    case 2:
        x ^= x >> 5;
        break;
    case 3:
        x = 1000 / (x % 50 + 1);
        break;
    case 4:
        x = ~x; /* falls into the next */
        __attribute__((fallthrough));
    case 5:
        x -= 9;
        break;
    case 6:
        x <<= 3;
        break;
    case 7:
        x = (uint32_t)__popc(x);
        break;
    case 8:
        x = x > 100 ? 100 : x;
        break;
    case 9:
        x = b[i];
        break;
    default:
        x = 0xdead;
        break;
    }
    out[i] = x;
}

KERNEL(control_switch_sparse, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    switch (a[i]) {
    case 0:
        out[i] = 5;
        return;
    case 31:
        out[i] = b[i];
        return;
    case 255:
        out[i] = b[i] + 1;
        return;
    case 65536:
        out[i] = b[i] * 2;
        return;
    case 0x7fffffffu:
        out[i] = 7;
        return;
    case 0x80000000u:
        out[i] = 8;
        return;
    }
    out[i] = 0;
}

KERNEL(control_loop_exits, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t sum = 0;
    for (uint32_t k = a[i] & 15;; k++) {
        if (k % 4 == 2)
            continue;
        sum += k ^ b[i];
        if (k > 20 || sum > 0xf0000000u)
            break;
    }
    out[i] = sum;
}

KERNEL(control_collatz, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    u64 x = a[i] % 5000 + 1;
    uint32_t steps = 0;
    do {
        x = x & 1 ? 3 * x + 1 : x / 2;
        steps++;
    } while (x != 1);
    out[i] = steps;
}

KERNEL(control_nested_loops, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t count = 0;
    for (uint32_t x = 1; x < (a[i] & 15); x++)
        for (uint32_t y = x; y < (b[i] & 15); y++) {
            uint32_t z = 1;
            while (z * z < x * x + y * y)
                z++;
            count += z * z == x * x + y * y ? 100 : 1;
        }
    out[i] = count;
}

/* A state machine with jumps into loops, as parsers have. */
KERNEL(control_states, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t bits = a[i], words = 0, left = 32;
outside:
    if (!left--)
        goto end;
    bits >>= 1;
    if (!(bits & 1))
        goto outside;
    words++;
inside:
    if (!left--)
        goto end;
    bits >>= 1;
    if (bits & 1)
        goto inside;
    goto outside;
end:
    out[i] = words;
}

KERNEL(control_short_circuit, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t r = 0;
    if (b[i] && a[i] / b[i] > 3 && (a[i] % b[i] == 0 || (b[i] & 2)))
        r |= 1;
    if (!(a[i] & 8) || (b[i] > 5 && a[i] < b[i]))
        r |= 2;
    out[i] = r;
}

DEVICE NOINLINE uint32_t mix(uint32_t x, uint32_t y)
{
    return (x ^ y >> 3) * 0x01000193u;
}

DEVICE NOINLINE uint32_t mix_twice(uint32_t x, uint32_t y)
{
    uint32_t r = mix(x, y);
    if (r & 1)
        r = mix(y, r) + 1;
    return r;
}

KERNEL(control_calls, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    out[i] = mix_twice(a[i], b[i]) + mix(b[i], a[i]);
}

/* Lanes call different functions, and some call none. */
KERNEL(control_divergent_calls, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t r = a[i];
    for (uint32_t k = 0; k < (b[i] & 3); k++)
        r = r & 1 ? mix(r, k) : r & 2 ? mix_twice(r, b[i]) : r + 7;
    out[i] = r;
}

typedef uint32_t operation(uint32_t x, uint32_t y);

DEVICE NOINLINE uint32_t take_less(uint32_t x, uint32_t y)
{
    return x < y ? x : y;
}

DEVICE operation *const operations[4] = {mix, mix_twice, take_less, mix};

KERNEL(control_indirect_calls, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t r = operations[a[i] & 3](a[i], b[i]);
    operation *next = r & 1 ? take_less : operations[b[i] & 1];
    for (uint32_t k = 0; k < (b[i] & 3); k++)
        r += next(r, k);
    out[i] = r;
}

struct point {
    int32_t x, y;
    u64 weight;
    uint8_t flags[3];
};

DEVICE NOINLINE struct point moved(struct point p, int16_t dx, int8_t dy)
{
    p.x = (int32_t)((uint32_t)p.x + (uint32_t)dx);
    p.y = (int32_t)((uint32_t)p.y - (uint32_t)dy);
    p.weight *= 3;
    p.flags[1] ^= p.flags[0];
    return p;
}

KERNEL(control_struct_calls, u64, uint32_t, uint32_t)
{
    EACH(i);
    struct point p = {(int32_t)a[i], (int32_t)b[i], i, {(uint8_t)a[i], (uint8_t)b[i], 9}};
    p = moved(p, (int16_t)b[i], (int8_t)a[i]);
    if (p.x & 1)
        p = moved(p, 5, -5);
    out[i] = (u64)(uint32_t)p.x << 32 ^ (uint32_t)p.y ^ p.weight ^ (u64)p.flags[1] << 8 ^ p.flags[2];
}

DEVICE NOINLINE u64 many(uint32_t a, u64 b, uint16_t c, float d, double e, int8_t f, uint32_t g, bool h,
                         u64 i, uint32_t j)
{
    return a + b * 3 + c + (u64)d + (u64)e + (u64)(s64)f + (h ? g : ~g) + i * j;
}

KERNEL(control_many_arguments, u64, uint32_t, uint32_t)
{
    EACH(i);
    out[i] = many(a[i], b[i], (uint16_t)a[i], (float)(b[i] & 255), (double)(a[i] & 1023), (int8_t)b[i], i,
                  a[i] > b[i], (u64)a[i] << 20, b[i]);
}

DEVICE NOINLINE void divide(uint32_t x, uint32_t y, uint32_t *quotient, uint32_t *rest)
{
    *quotient = y ? x / y : 0;
    *rest = y ? x % y : x;
}

/* Results through pointers into the caller's frame. */
KERNEL(control_out_arguments, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t q, r;
    divide(a[i], b[i] & 0xff, &q, &r);
    divide(q, (r & 15) + 1, &q, &r);
    out[i] = q * 31 + r;
}

/* A small machine: a switch in a loop, over code that differs by lane. */
KERNEL(control_interpreter, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t registers[4] = {a[i], b[i], 1, i}, code = a[i] ^ b[i] << 7;
    for (uint32_t step = 0; step < 24; step++) {
        uint32_t d = code & 3, s = code >> 2 & 3;
        switch (code >> 4 & 7) {
        case 0:
            registers[d] += registers[s];
            break;
        case 1:
            registers[d] -= registers[s];
            break;
        case 2:
            registers[d] *= registers[s];
            break;
        case 3:
            registers[d] ^= registers[s] >> 1;
            break;
        case 4:
            registers[d] = registers[s];
            break;
        case 5:
            step += registers[d] & 1;
            break;
        case 6:
            registers[d] = ~registers[d];
            break;
        case 7:
            registers[d] = registers[d] << 3 | registers[d] >> 29;
            break;
        }
        code = code * 1664525u + 1013904223u + registers[0];
    }
    out[i] = registers[0] ^ registers[1] ^ registers[2] ^ registers[3];
}

KERNEL(control_ternaries, int32_t, int32_t, int32_t)
{
    EACH(i);
    int32_t x = a[i], y = b[i];
    int32_t middle = x < y ? (y < 100 ? y : x < 100 ? 100 : x) : (x < 100 ? x : y < 100 ? 100 : y);
    out[i] = middle > 0 ? (middle & 1 ? middle : -middle) : (x == y ? 0 : middle);
}

KERNEL(control_unrolled, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t count = a[i] & 31, sum = b[i], k = 0;
    switch (count & 3) { /* Duff's device */
        do {
        case 0:
            sum = sum * 3 + k++;
            __attribute__((fallthrough));
        case 3:
            sum ^= sum << 7;
            k++;
            __attribute__((fallthrough));
        case 2:
            sum += k++;
            __attribute__((fallthrough));
        case 1:
            sum ^= sum >> 5;
        } while (k++ < count);
    }
    out[i] = sum;
}
