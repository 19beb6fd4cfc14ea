/* A request's combinations, by number. */
#include "request.h"

#include "family.h"

size_t request_count(const request *r)
{
    size_t result = 1, params = family_param_count(r->family);
    for (size_t i = 0; i < params; i++) {
        result *= r->values[i].count;
        if (result > MOST_COMBINATIONS)
            return MOST_COMBINATIONS + 1;
    }
    return result;
}

void request_values(const request *r, size_t number, variant *v)
{
    for (size_t i = family_param_count(r->family); i-- > 0;) {
        v->values[i] = r->values[i].items[number % r->values[i].count];
        number /= r->values[i].count;
    }
}
