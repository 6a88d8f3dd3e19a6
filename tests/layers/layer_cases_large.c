/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes from which on CUDA impls take another way: several outputs to a thread, sliced
 * planes, a line to a block. Too large for a host without OpenMP.
 */
#include "tests/layers/layer_cases.h"

#define S2(...) {2, {__VA_ARGS__}}
#define S4(...) {4, {__VA_ARGS__}}

const struct layer_case layer_cases_large[] = {
    {"Pooling", "kernel = 3; pad = 1", .in = {S4(1, 64, 134, 130)}},
    {"Pooling", "kernel = 3; pad = 1; kind = average; count_include_pad = true",
     .in = {S4(1, 66, 131, 137)}},
    {"Pooling", "kernel = 5x3; stride = 2; pad = 1; kind = average",
     .in = {S4(1, 72, 270, 141)}},
    {"Pooling", "kernel = 3; stride = 2; pad = 1", .in = {S4(1, 7, 730, 732)}},
    {"Pooling", "global = true; kind = average", .in = {S4(2, 23, 150, 151)}},
    {"Pooling", "global = true", .in = {S4(1, 8, 256, 256)}},
    {"Pooling", "global = true; kind = average", .in = {S4(1, 3, 61, 63)}},
    {"Pooling", "global = true; kind = average", .in = {S4(16, 515, 7, 7)}},
    {"Softmax", "", .in = {S2(3, 5000)}},
    {"Softmax", "log = true", .in = {S2(5, 3001)}},
    {"Softmax", "axis = 0", .in = {S2(1200, 33)}},
    {"Softmax", "", .in = {S2(3000, 10)}},
    {"Softmax", "", .in = {S4(1, 601, 20, 24)}},
    {"Softmax", "", .in = {S4(2, 1000, 1, 1)}},
    {"Softmax", "log = true", .in = {S4(7, 1024, 1, 1)}},
    {"Softmax", "", .in = {S4(1, 5, 512, 264)}, .low = -50, .high = 50},
    {"Softmax", "log = true", .in = {S4(2, 31, 256, 260)}},
    {"Softmax", "", .in = {S4(8, 3, 128, 132)}},
    {"Scale", "", .in = {S4(4, 65, 57, 61)}, .absent = 4},
    {"Scale", "mode = elementwise", .in = {S4(3, 70, 33, 40)}, .absent = 4},
    {"ElementWise", "op = product", .n_in = 2,
     .in = {S4(4, 65, 57, 61), S4(4, 65, 1, 1)}},
    {"ElementWise", "op = sum", .n_in = 3,
     .in = {S4(2, 72, 57, 61), S4(2, 72, 57, 61), S4(1, 72, 1, 1)}},
};

const size_t layer_cases_large_count =
    sizeof layer_cases_large / sizeof layer_cases_large[0];
