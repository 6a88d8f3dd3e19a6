/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of RNN: cells, options and layouts over sizes that vectors and tiles miss,
 * lengths from none to all, sequences of one step, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define WEIGHTS .weight_low = -0.5, .weight_high = 0.5
#define LENGTHS(t) .in_dtype = {[1] = STRATA_INT32}, .in_range = {[1] = {0, (t)}}
#define NO_BIAS 1 << 3
#define NO_PEEPHOLES 1 << 4
#define PLAIN .absent = NO_PEEPHOLES, WEIGHTS

static const struct layer_case cases[] = {
    /* cells */
    {"RNN", "op = lstm; hidden = 19", .in = {S3(5, 3, 11)}, PLAIN},
    {"RNN", "op = lstm; hidden = 16", .in = {S3(4, 2, 16)}, WEIGHTS},
    {"RNN", "op = lstm; hidden = 7", .in = {S3(3, 5, 6)}, WEIGHTS,
     .absent = NO_BIAS | NO_PEEPHOLES},
    {"RNN", "op = gru; hidden = 19", .in = {S3(5, 3, 11)}, WEIGHTS},
    {"RNN", "op = gru; hidden = 33; reset_after = no", .in = {S3(4, 5, 8)}, WEIGHTS},
    {"RNN", "op = gru; hidden = 8; reset_after = no", .in = {S3(4, 1, 8)}, WEIGHTS,
     .absent = NO_BIAS},
    {"RNN", "op = tanh; hidden = 17", .in = {S3(6, 2, 5)}, WEIGHTS},
    {"RNN", "op = relu; hidden = 5", .in = {S3(3, 7, 9)}, WEIGHTS},
    /* sizes */
    {"RNN", "op = lstm; hidden = 1", .in = {S3(1, 1, 1)}, PLAIN},
    {"RNN", "op = gru; hidden = 3", .in = {S3(1, 4, 2)}, WEIGHTS},
    {"RNN", "op = lstm; hidden = 64", .in = {S3(9, 6, 32)}, PLAIN},
    {"RNN", "op = lstm; hidden = 128", .in = {S3(3, 17, 40)}, PLAIN, .tolerance = 2},
    {"RNN", "op = gru; hidden = 96", .in = {S3(3, 9, 24)}, WEIGHTS, .tolerance = 2},
    {"RNN", "op = lstm", .in = {S3(2, 3, 4)}, .weight = {[2] = S3(1, 20, 5)}, PLAIN},
    {"RNN", "op = lstm; hidden = 4", .in = {S3(3, 0, 4)}, PLAIN},
    {"RNN", "op = lstm; hidden = 4", .in = {S3(3, 2, 0)}, PLAIN, .may_refuse = true},
    /* directions, layers, layouts */
    {"RNN", "op = lstm; hidden = 9; direction = reverse", .in = {S3(5, 2, 7)}, PLAIN},
    {"RNN", "op = lstm; hidden = 9; direction = bidirectional", .in = {S3(5, 2, 7)},
     WEIGHTS},
    {"RNN", "op = gru; hidden = 9; direction = bidirectional; split_directions = yes",
     .in = {S3(5, 2, 7)}, WEIGHTS},
    {"RNN", "op = lstm; hidden = 9; layout = batch", .in = {S3(2, 5, 7)}, PLAIN},
    {"RNN",
     "op = gru; hidden = 6; layout = batch; direction = bidirectional; "
     "split_directions = yes",
     .in = {S3(2, 5, 7)}, WEIGHTS},
    {"RNN", "op = tanh; hidden = 6; layout = batch; direction = bidirectional",
     .in = {S3(2, 5, 7)}, WEIGHTS},
    {"RNN", "op = lstm; hidden = 12; layers = 3", .in = {S3(4, 3, 5)}, PLAIN,
     .tolerance = 2},
    {"RNN",
     "op = gru; hidden = 10; layers = 2; direction = bidirectional; layout = batch",
     .in = {S3(3, 4, 5)}, WEIGHTS, .tolerance = 2},
    {"RNN", "op = relu; hidden = 7; layers = 4; direction = bidirectional",
     .in = {S3(3, 2, 5)}, .weight_low = -0.2, .weight_high = 0.2, .tolerance = 2},
    /* options */
    {"RNN", "op = lstm; hidden = 11; input_mode = skip", .in = {S3(4, 3, 11)}, PLAIN},
    {"RNN", "op = gru; hidden = 18; input_mode = skip; layers = 2", .in = {S3(4, 3, 18)},
     WEIGHTS, .tolerance = 2},
    {"RNN", "op = lstm; hidden = 9; clip = 0.4", .in = {S3(4, 3, 6)}, WEIGHTS},
    {"RNN", "op = gru; hidden = 9; clip = 0.3; reset_after = no", .in = {S3(4, 3, 6)},
     WEIGHTS},
    {"RNN", "op = lstm; hidden = 9; coupled = yes", .in = {S3(4, 3, 6)}, WEIGHTS},
    {"RNN", "op = lstm; hidden = 9; activations = hard_sigmoid softsign elu",
     .in = {S3(4, 3, 6)}, PLAIN},
    {"RNN",
     "op = gru; hidden = 9; direction = bidirectional; "
     "activations = sigmoid tanh hard_sigmoid leaky_relu; "
     "activation_alpha = inf, inf, 0.3, 0.2; activation_beta = inf, inf, 0.4, inf",
     .in = {S3(4, 3, 6)}, WEIGHTS},
    {"RNN", "op = tanh; hidden = 9; activations = scaled_tanh; activation_alpha = 0.5",
     .in = {S3(4, 3, 6)}, WEIGHTS},
    /* lengths and first states */
    {"RNN", "op = lstm; hidden = 17", .n_in = 2, .in = {S3(4, 9, 6), S1(9)}, LENGTHS(4),
     PLAIN},
    {"RNN", "op = gru; hidden = 5; direction = bidirectional; layers = 2", .n_in = 2,
     .in = {S3(4, 9, 6), S1(9)}, LENGTHS(4), WEIGHTS, .tolerance = 2},
    {"RNN", "op = gru; hidden = 5; reset_after = no; layout = batch; direction = reverse",
     .n_in = 3, .in = {S3(9, 4, 6), S1(9), S3(1, 9, 5)}, LENGTHS(4), WEIGHTS},
    {"RNN", "op = lstm; hidden = 5; direction = bidirectional", .n_in = 4,
     .in = {S3(4, 7, 6), S1(7), S3(2, 7, 5), S3(2, 7, 5)}, LENGTHS(1), WEIGHTS},
    {"RNN", "op = lstm; hidden = 5", .n_in = 4,
     .in = {S3(4, 3, 6), S1(3), S3(1, 3, 5), S3(1, 3, 5)},
     .in_dtype = {[1] = STRATA_INT32}, .in_range = {[1] = {-1, 0}}, PLAIN},
    {"RNN", "op = lstm; hidden = 5", .n_in = 4,
     .in = {S3(4, 3, 6), S1(3), S3(1, 3, 5), S3(1, 3, 5)},
     .in_dtype = {[1] = STRATA_INT32}, .in_range = {[1] = {3, 9}}, PLAIN},
    {"RNN", "op = lstm; hidden = 5; layers = 2", .n_in = 4,
     .in = {S3(1, 3, 6), {0}, S3(2, 3, 5), S3(2, 3, 5)}, PLAIN},
    {"RNN", "op = lstm; hidden = 5", .n_in = 4,
     .in = {S3(4, 3, 6), {0}, {0}, S3(1, 3, 5)}, PLAIN},
    {"RNN", "op = relu; hidden = 5", .n_in = 3, .in = {S3(2, 3, 6), {0}, S3(1, 3, 5)},
     WEIGHTS},
    /* refused */
    {"RNN", "op = lstm", .in = {S3(2, 3, 4)}, .refused = true},
    {"RNN", "op = lstm; hidden = 4", .in = {S2(3, 4)}, .refused = true},
    {"RNN", "op = lstm; hidden = 4", .in = {S3(0, 3, 4)}, .refused = true},
    {"RNN", "op = lstm; hidden = 4; input_mode = skip", .in = {S3(2, 3, 5)},
     .refused = true},
    {"RNN", "op = gru; hidden = 4; coupled = yes", .in = {S3(2, 3, 5)}, .refused = true},
    {"RNN", "op = gru; hidden = 4", .in = {S3(2, 3, 5)}, .weight = {[4] = S2(1, 12)},
     .refused = true},
    {"RNN", "op = lstm; hidden = 4; activations = tanh", .in = {S3(2, 3, 5)},
     .refused = true},
    {"RNN", "op = lstm; hidden = 4; activations = tanh tanh tangent", .in = {S3(2, 3, 5)},
     .refused = true},
    {"RNN", "op = lstm; hidden = 4; activation_alpha = 1, 2", .in = {S3(2, 3, 5)},
     .refused = true},
    {"RNN", "op = lstm; hidden = 4", .in = {S3(2, 3, 5)}, .weight = {S3(1, 16, 4)},
     .refused = true},
    {"RNN", "op = lstm; hidden = 4", .in = {S3(2, 3, 5)}, .weight = {[3] = S2(1, 16)},
     .refused = true},
    {"RNN", "op = lstm; hidden = 4", .n_in = 2, .in = {S3(2, 3, 5), S1(2)}, LENGTHS(2),
     .refused = true},
    {"RNN", "op = lstm; hidden = 4", .n_in = 2, .in = {S3(2, 3, 5), S1(3)},
     .in_dtype = {[1] = STRATA_INT64}, .refused = true},
    {"RNN", "op = lstm; hidden = 4", .n_in = 3, .in = {S3(2, 3, 5), {0}, S3(2, 3, 4)},
     .refused = true},
    {"RNN", "op = gru; hidden = 4", .n_in = 4, .in = {S3(2, 3, 5), {0}, {0}, S3(1, 3, 4)},
     .refused = true},
};

static const struct layer_case large[] = {
    {"RNN", "op = lstm; hidden = 256", .in = {S3(20, 16, 128)}, .absent = NO_PEEPHOLES,
     .weight_low = -0.06, .weight_high = 0.06, .tolerance = 2},
    {"RNN", "op = lstm; hidden = 1024", .in = {S3(12, 16, 256)}, .absent = NO_PEEPHOLES,
     .weight_low = -0.03, .weight_high = 0.03, .tolerance = 2},
    {"RNN", "op = gru; hidden = 1024", .in = {S3(12, 3, 64)}, .weight_low = -0.03,
     .weight_high = 0.03, .tolerance = 2},
    {"RNN", "op = lstm; hidden = 512; direction = bidirectional", .n_in = 2,
     .in = {S3(12, 33, 64), S1(33)}, LENGTHS(12), .absent = NO_PEEPHOLES,
     .weight_low = -0.04, .weight_high = 0.04, .tolerance = 2},
    {"RNN", "op = gru; hidden = 320; layers = 2; direction = bidirectional", .n_in = 3,
     .in = {S3(9, 64, 64), S1(64), S3(4, 64, 320)}, LENGTHS(9), .weight_low = -0.05,
     .weight_high = 0.05, .tolerance = 2},
};

LAYER_CASES(RNN, ORDINARY(cases), LARGE(large))
