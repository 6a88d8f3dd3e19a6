/* SPDX-License-Identifier: Apache-2.0
 *
 * Pixels of a few channels, halves into halves: planes, pairs and lanes on both sides.
 */
#include "kernels/reformat/pixel.cuh"

void reformat_launch_pixel_halves(const reformat_pixel *j, cudaStream_t s)
{
    launch_pixel<__half, __half>(j, s);
}
