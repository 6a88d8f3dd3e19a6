/* SPDX-License-Identifier: Apache-2.0
 *
 * Pixels of a few channels: which kernel of kernels/reformat/pixel.cuh a job has.
 */
#include "kernels/reformat/pixel.cuh"

template <typename To, typename From>
static void launch(const reformat_pixel *j, cudaStream_t s)
{
    launch_pixel<To, From>(j, s);
}
template <>
void launch<__half, __half>(const reformat_pixel *j, cudaStream_t s)
{
    reformat_launch_pixel_halves(j, s);
}

extern "C" int reformat_launch_pixel(const struct reformat_pixel *j, int to, int from,
                                     void *stream)
{
#define LAUNCH(TO, To, FROM, From)  \
    if (to == (TO) && from == (FROM)) \
        launch<To, From>(j, (cudaStream_t)stream);
    REFORMAT_IMAGES(LAUNCH)
#undef LAUNCH
    return cudaPeekAtLastError();
}
