// SPDX-License-Identifier: Apache-2.0
//
// Median, in C++: each element becomes the median of those within `radius` of it. Shows a
// C++ object in an instance's state, and STRATA_GUARD, past which no exception goes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include <strata/plugin.h>

namespace
{

struct Params {
    std::int64_t radius;
};

// Rows and columns to go from the middle to each element of the disc.
using Disc = std::vector<std::pair<std::int64_t, std::int64_t>>;

Disc make_disc(std::int64_t radius)
{
    Disc disc;
    for (std::int64_t i = -radius; i <= radius; i++)
        for (std::int64_t k = -radius; k <= radius; k++)
            if (i * i + k * k <= radius * radius)
                disc.emplace_back(i, k);
    return disc;
}

// A total order: NaN after all numbers. Without one, nth_element may do anything.
template <typename T>
bool before(T a, T b)
{
    return b != b ? a == a : a < b;
}

// The lower median of what the disc covers of a plane.
template <typename T>
T median(const Disc &disc, const T *plane, const std::int64_t *dims, std::int64_t h,
         std::int64_t w, T *window)
{
    T *end = window;
    for (const auto &step : disc) {
        const std::int64_t row = h + step.first, column = w + step.second;
        if (row >= 0 && row < dims[2] && column >= 0 && column < dims[3])
            *end++ = plane[row * dims[3] + column];
    }
    T *middle = window + (end - window - 1) / 2;
    std::nth_element(window, middle, end, before<T>);
    return *middle;
}

template <typename T>
void filter(const Disc &disc, const std::int64_t *dims, const T *x, T *y, T *window)
{
    const std::int64_t plane = dims[2] * dims[3];
    for (std::int64_t i = 0; i < dims[0] * dims[1] * plane; i++)
        y[i] = median(disc, x + i / plane * plane, dims, i % plane / dims[3], i % dims[3],
                      window);
}

int shape(const strata_node *n)
{
    if (n->in[0].rank != 4)
        return STRATA_FAIL(n, STRATA_EINVAL, "input has rank %d; 4 is needed",
                           (int)n->in[0].rank);
    n->out[0].rank = 4;
    std::copy_n(n->in[0].dims, 4, n->out[0].dims);
    return STRATA_OK;
}

std::size_t workspace(const strata_node *n)
{
    const std::int64_t side = 2 * static_cast<const Params *>(n->params)->radius + 1;
    return static_cast<std::size_t>(side * side) * sizeof(float);
}

int setup(const strata_node *n, void *state)
{
    STRATA_GUARD(n, {
        new (state) Disc(make_disc(static_cast<const Params *>(n->params)->radius));
        return STRATA_OK;
    })
}

void teardown(void *state)
{
    static_cast<Disc *>(state)->~Disc();
}

int run(const strata_run *r)
{
    STRATA_GUARD(r, {
        filter(*static_cast<const Disc *>(r->state), r->out[0].dims,
               static_cast<const float *>(r->in[0].data),
               static_cast<float *>(r->out[0].data), static_cast<float *>(r->workspace));
        return STRATA_OK;
    })
}

int define(const strata_node *n, const double *const *in, const double *const *,
           double *const *out)
{
    STRATA_GUARD(n, {
        const Disc disc = make_disc(static_cast<const Params *>(n->params)->radius);
        std::vector<double> window(disc.size());
        filter(disc, n->out[0].dims, in[0], out[0], window.data());
        return STRATA_OK;
    })
}

// A NaN among the numbers of a disc counts as the largest, so the median is a number.
const strata_reference reference = {sizeof(strata_reference), STRATA_NAN_IGNORED, define};

const void *extension(const char *id)
{
    return std::strcmp(id, STRATA_REFERENCE_V1) == 0 ? &reference : nullptr;
}

const strata_attr attrs[] = {
    {.name = "radius",
     .type = STRATA_I64,
     .offset = offsetof(Params, radius),
     .def = 1,
     .min = 1,
     .max = 15,
     .doc = "of the disc around each element"},
};
const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};
const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .name = "cpp",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.01,
     .state_size = sizeof(Disc),
     .workspace = workspace,
     .setup = setup,
     .teardown = teardown,
     .run = run},
};
const strata_layer layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Median",
    .doc = "Median of a disc around each element",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(Params),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = shape,
    .extension = extension,
};
const strata_layer *const layers[] = {&layer};

} // namespace

STRATA_MODULE("org.example", "1.0.0", "Median", layers)
