/* SPDX-License-Identifier: Apache-2.0
 *
 * Each pattern is found, and computes what its operators do one by one.
 */
#include "tests/network/import/free_model.h"
#include "tests/network/import/pattern_case.h"

#define ERF_2 "d = Div x 1.41421356; e = Erf d; s = Add e 1; "
#define ERF_HALF "d = Mul x 0.70710678; e = Erf d; s = Add 1 e; "
#define TANH_POW                                                                         \
    "p = Pow x 3; c = Mul 0.044715 p; a = Add x c; g = Mul a 0.7978845608; "             \
    "t = Tanh g; s = Add 1 t; "
#define TANH_MUL                                                                         \
    "q = Mul x x; p = Mul q x; c = Mul p 0.044715; a = Add c x; g = Mul a 0.7978846; "   \
    "t = Tanh g; s = Add t 1; "
#define TANH_LEFT                                                                        \
    "k = Mul x 0.044715; q = Mul k x; c = Mul q x; a = Add x c; g = Mul a 0.7978846; "   \
    "t = Tanh g; s = Add t 1; "
#define TANH_PRODUCT                                                                     \
    "k = Mul x 0.7978846; c = Mul x 0.044715; q = Mul c x; a = Add q 1; g = Mul k a; "   \
    "t = Tanh g; s = Add t 1; "
#define END_1 "m = Mul s x; y = Mul m 0.5"
#define END_2 "h = Mul 0.5 x; y = Mul h s"
#define END_3 "h = Mul s 0.5; y = Mul x h"
#define X "x=2x3x4x5"

#define GELU(text)                                                                       \
    {                                                                                    \
        X, text, "Activation", "kind = gelu\n", NULL                                     \
    }
#define GELU_TANH(text)                                                                  \
    {                                                                                    \
        X, text, "Activation", "kind = gelu_tanh\n", NULL                                \
    }
#define KIND(text, kind)                                                                 \
    {                                                                                    \
        X, text, "Activation", "kind = " kind "\n", NULL                                 \
    }
#define LAYER(square, over)                                                              \
    "m = ReduceMean x [-1]; d = Sub x m; " square "v = ReduceMean p [2]; "               \
    "e = Add v 0.001; s = Sqrt e; " over
#define RMS(square, over)                                                                \
    square "v = ReduceMean p [-1]; e = Add v 0.001; s = Sqrt e; " over

#define SEEN(s) "w0 = Softmax " s " axis=-1; n = IsNaN w0; w = Where n 0 w0; "
/* Six heads of three, by `dims` with one more of 2 at `at`. */
#define GROUP(x, at, dims)                                                               \
    x "0 = Unsqueeze " x " [" at "]; " x "1 = Expand " x "0 [" dims ",1,1]; " x          \
      "2 = Reshape " x "1 [2,6,7,-1]; "
#define PACKED                                                                           \
    "a = Reshape x [2,5,3,3,8]; b = Transpose a perm=2,0,3,1,4; q = Gather b <0> "       \
    "axis=0; k0 = Gather b <1> axis=0; v = Gather b <2> axis=0; k = Transpose k0 "       \
    "perm=0,1,3,2; "

/* Row i of x, and what a cell makes of it. */
#define ROW_OF(name, i) name " = Gather x <" i "> axis=0; "
#define CELL_WEIGHTS "w = Identity {6x8}; v = Identity {6}; "
#define CELL(name, i)                                                                    \
    ROW_OF(name, i) name "1 = Gemm " name " w v transB=1 alpha=1.0 beta=1.0; "

/* The first and the last row of a value along an axis, multiplied; u: x turned. */
#define FREE_ROWS(value, axis, shape)                                                    \
    "input x f " shape "\ninit w f 8x2 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"         \
    "init i i - 0\ninit k i - -1\nnode Tanh x -> t\nnode Transpose t -> u "              \
    "perm=[1,0,2]\n"                                                                     \
    "node Gather " value ",i -> a axis=" axis "\nnode Gather " value                     \
    ",k -> b axis=" axis                                                                 \
    "\nnode MatMul a,w -> c\nnode MatMul b,w -> d\nnode Sub c,d -> y\noutput y\n"

static const struct pattern_case cases[] = {
    /* attention */
    {APART,
     QUERIES("x") KEYS("d")
         VALUES("e") "p = MatMul q k; s = Div p 2.8284271; " SHARES("s") JOIN,
     "Attention", "inputs = x, d, e\nheads = 3\n", NULL},
    {APART " m=2x1x1x7",
     QUERIES("x") KEYS("d") VALUES(
         "e") "i = Mul q 0.5; j = Mul 0.25 k; p = MatMul i j; s = Add m p; " SHARES("s")
         JOIN,
     "Attention", "inputs = x, d, e, m\nheads = 3\nscale = 0.125\n", NULL},
    {APART,
     QUERIES("x") KEYS("d") VALUES("e") "p = MatMul q k; s = Add p {3x5x7}; " SHARES("s")
         JOIN,
     "Constant Attention", NULL, NULL},
    {"x=2x5x72", PACKED "p = MatMul q k; " SHARES("p") JOIN, "Attention",
     "\nheads = 3\nscale = 1\n", NULL},
    {"x=2x5x72",
     "f = Slice x [0] [24] [2]; g = Slice x [24] [48] [-1]; h = Slice x [-24] "
     "[999] [2]; q0 = Reshape f [2,5,3,8]; q = Transpose q0 perm=0,2,1,3; k0 = Reshape g "
     "[2,5,3,8]; k1 = Transpose k0 perm=0,2,1,3; k2 = Reshape k1 [-1,5,8]; k3 = "
     "Transpose "
     "k2 perm=0,2,1; k = Reshape k3 [2,3,8,5]; v0 = Reshape h [2,5,3,8]; v = Transpose "
     "v0 perm=0,2,1,3; p = MatMul q k; " SHARES("p") JOIN,
     "Attention", NULL, NULL},
    {"x=2x5x24",
     "f = MatMul x {24x24}; g = Add f {24}; h = MatMul x {24x24}; i = Add {24} "
     "h; j = MatMul x {24x24}; l = Add j {24}; " QUERIES(
         "g") "k0 = Reshape i [2,5,3,8]; k = Transpose k0 perm=0,2,3,1; v0 = Reshape l "
              "[2,5,3,8]; "
              "v = Transpose v0 perm=0,2,1,3; p = MatMul q k; " SHARES("p") JOIN,
     "MatrixMultiply Attention", NULL, NULL},
    {"x=2x5x24 d=2x7x8 e=2x7x8",
     QUERIES(
         "x") "k0 = Reshape d [2,1,1,7,8]; k1 = Expand k0 [2,1,3,7,8]; k2 = Reshape k1 "
              "[2,3,7,8]; "
              "k = Transpose k2 perm=0,1,3,2; v0 = Reshape e [2,1,1,7,8]; v1 = Expand v0 "
              "[2,1,3,7,8]; v = Reshape v1 [2,3,7,8]; p = MatMul q k; " SHARES("p") JOIN,
     "Attention", "kv_heads = 1\n", NULL},
    {"x=2x3x5x8 d=2x3x7x8 e=2x3x7x4",
     "k = Transpose d perm=0,1,3,2; p = MatMul x k; w = Softmax p axis=3; y = MatMul w e",
     "Attention", "inputs = x, d, e\nscale = 1\n", NULL},
    {"x=2x3x5x8 d=2x3x8x7 e=2x3x7x4",
     "p = MatMul x d; w = Softmax p axis=3; "
     "y = MatMul w e",
     "Shuffle Attention", NULL, NULL},
    {APART,
     QUERIES("x") "k0 = Reshape d [2,7,3,8]; k = Transpose k0 perm=0,2,1,3; " VALUES(
         "e") "o = Attention q k v is_causal=1 scale=0.5; " JOIN,
     "Attention", "inputs = x, d, e\nheads = 3\n", NULL},
    /* zeros for a query that sees no key; heads of keys and values for several of
     * queries, which a tile repeats in another order */
    {APART " m=2x1x5x1",
     QUERIES("x") KEYS("d") VALUES("e") "p = MatMul q k; r = Relu m; l = Log r; "
                                        "s = Add p l; " SEEN("s") "o = MatMul w v; " JOIN,
     "Activation Unary Attention", "heads = 3\n", NULL},
    {"x=2x6x5x8 d=2x3x7x8 e=2x3x7x4",
     GROUP("d", "2", "2,3,2") "k = Transpose d2 perm=0,1,3,2; " GROUP(
         "e", "2", "2,3,2") "p = MatMul x k; " SEEN("p") "y = MatMul w e2",
     "Attention", "inputs = x, d, e\nscale = 1\n", NULL},
    {"x=2x6x5x8 d=2x3x7x8 e=2x3x7x4",
     GROUP("d", "1", "2,2,3") "k = Transpose d2 perm=0,1,3,2; " GROUP(
         "e", "1", "2,2,3") "p = MatMul x k; w = Softmax p axis=-1; y = MatMul w e2",
     "Shuffle Expand Shuffle Shuffle Expand Shuffle Attention", NULL, NULL},
    /* windows of an image, with a mask a window */
    {"x=4x3x5x8 d=4x3x8x5 e=4x3x5x8",
     "p = MatMul x d; a = Add p {1x3x5x5}; r = Reshape a "
     "[1,4,3,5,5]; b = Add r {1x4x1x5x5}; z = Reshape b [4,3,5,5]; w = Softmax z "
     "axis=-1; "
     "y = MatMul w e",
     "Shuffle Constant Attention", NULL, NULL},
    /* another axis; a factor behind the mask; a mask that makes more; scores that
     * somebody reads */
    {"x=2x3x5x8 d=2x3x8x7 e=2x3x7x4",
     "p = MatMul x d; w = Softmax p axis=2; y = MatMul w e",
     "MatrixMultiply Softmax MatrixMultiply", NULL, NULL},
    {"x=2x3x5x8 d=2x3x8x7 e=2x3x7x4 m=5x7",
     "p = MatMul x d; a = Add p m; s = Mul a 0.5; "
     "w = Softmax s axis=-1; y = MatMul w e",
     "MatrixMultiply ElementWise Scale Softmax MatrixMultiply", NULL, NULL},
    {"x=1x3x5x8 d=1x3x8x7 e=1x3x7x4 m=2x1x5x7",
     "p = MatMul x d; a = Add p m; "
     "w = Softmax a axis=-1; y = MatMul w e",
     "MatrixMultiply ElementWise Softmax MatrixMultiply", NULL, NULL},
    {"x=2x3x5x8 d=2x3x8x7 e=2x3x7x4",
     "p = MatMul x d; w = Softmax p axis=-1; y = MatMul w e",
     "MatrixMultiply Softmax MatrixMultiply", NULL, "w"},
    GELU(ERF_2 END_1),
    GELU(ERF_2 END_2),
    GELU(ERF_2 END_3),
    GELU(ERF_HALF END_1),
    GELU(ERF_HALF END_2),
    GELU(ERF_HALF END_3),
    GELU_TANH(TANH_POW END_1),
    GELU_TANH(TANH_POW END_2),
    GELU_TANH(TANH_MUL END_1),
    GELU_TANH(TANH_MUL END_3),
    GELU_TANH(TANH_LEFT END_2),
    GELU_TANH(TANH_PRODUCT END_2),
    KIND("s = Sigmoid x; y = Mul x s", "silu"),
    KIND("s = Sigmoid x; y = Mul s x", "silu"),
    KIND("b = Mul 1.702 x; s = Sigmoid b; y = Mul x s", "swish\nalpha = 1.702"),
    KIND("p = Softplus x; t = Tanh p; y = Mul x t", "mish"),
    KIND("e = Exp x; a = Add e 1; l = Log a; t = Tanh l; y = Mul x t", "mish"),
    KIND("e = Exp x; a = Add 1 e; y = Log a", "softplus"),
    KIND("a = Add x 3; c = Clip a 0 6; m = Mul x c; y = Div m 6", "hard_swish"),
    KIND("a = Add x 3; c = Clip a 0 6; d = Div c 6; y = Mul x d", "hard_swish"),
    KIND("a = Add x 3; r = Relu a; c = Min r 6; m = Mul x c; y = Mul m 0.16666667",
         "hard_swish"),
    KIND("h = HardSigmoid x alpha=0.16666667 beta=0.5; y = Mul x h", "hard_swish"),
    KIND("a = Add x 3; c = Clip a 0 6; y = Div c 6", "hard_sigmoid"),
    KIND("y = Clip x 0 6", "relu6"),
    KIND("r = Relu x; y = Min r 6", "relu6"),
    KIND("a = Max x 0; y = Min a 6", "relu6"),
    KIND("a = Min 6 x; y = Max 0 a", "relu6"),
    KIND("y = Clip x -0.5 1.5", "clip"),
    {X, "y = Max x 0", "Activation", NULL, NULL},
    {X, "y = Clip x 0", "Activation", NULL, NULL},
    /* not quite: another number, other readers, an output */
    {X, "d = Div x 1.41421356; e = Erf d; s = Add e 1; m = Mul x s; y = Mul m 0.4",
     "Scale Unary Scale ElementWise Scale", NULL, NULL},
    {X, "s = Sigmoid x; m = Mul x s; y = Add m s", "Activation ElementWise ElementWise",
     NULL, NULL},
    {X, "s = Sigmoid x; y = Mul x s", "Activation ElementWise", NULL, "s"},
    ROWS(LAYER("p = Pow d 2; ", "n = Div d s; w = Mul n {8}; y = Add w {8}"),
         "Normalization", "epsilon = 0.001\n"),
    ROWS(LAYER("p = Mul d d; ", "r = Reciprocal s; n = Mul d r; w = Mul {8} n; "
                                "y = Add {1x8} w"),
         "Normalization", NULL),
    ROWS(LAYER("p = Pow d 2; ", "r = Div 1 s; n = Mul r d; y = Mul n {8}"),
         "Normalization", NULL),
    ROWS(LAYER("p = Pow d 2; ", "y = Div d s"), "Normalization", NULL),
    ROWS("m = ReduceMean x [-1,1]; d = Sub x m; p = Mul d d; v = ReduceMean p [1,2]; "
         "e = Add v 0.001; s = Sqrt e; n = Div d s; y = Mul n {3x8}",
         "Normalization", "axis = 1\n"),
    ROWS(RMS("p = Pow x 2; ", "n = Div x s; y = Mul n {8}"), "Normalization",
         "kind = rms\n"),
    ROWS(RMS("p = Mul x x; ", "r = Reciprocal s; n = Mul x r; y = Mul {8} n"),
         "Normalization", NULL),
    ROWS(RMS("p = Mul x x; ", "y = Div x s"), "Normalization", NULL),
    /* over a dim that is not the last */
    ROWS("p = Mul x x; v = ReduceMean p [1]; e = Add v 0.001; s = Sqrt e; y = Div x s",
         "ElementWise Reduce Scale Unary ElementWise", NULL),
    {"x=2x6x4x5",
     "r = Reshape x [2,3,-1]; n = InstanceNormalization r {3}*1 {3}*0; "
     "q = Reshape n [2,6,4,5]; w = Mul q {6x1x1}; y = Add w {6x1x1}",
     "Normalization", "groups = 3\n", NULL},
    /* products */
    ROWS("p = MatMul x {8x5}; y = Add p {5}", "MatrixMultiply", NULL),
    ROWS("p = MatMul x {8x5}; y = Add {1x5} p", "MatrixMultiply", NULL),
    ROWS("p = MatMul x {8x5}; y = Add p {3x5}", "MatrixMultiply Constant ElementWise",
         NULL),
    {"x=3x8", "p = Gemm x {5x8} transB=1; y = Add p {5}", "MatrixMultiply", NULL, NULL},
    /* columns of products */
    {"x=3x8", "p = Gemm x {5x8} transB=1; y = BatchNormalization p {5} {5} {5} {5}*1",
     "MatrixMultiply", NULL, NULL},
    {"x=3x8",
     "p = Gemm x {8x5} {5} alpha=0.5 beta=3.0; y = BatchNormalization p {5} {5} {5} "
     "{5}*1",
     "MatrixMultiply", NULL, NULL},
    ROWS("p = MatMul x {8x5}; r = Reshape p [6,5]; "
         "n = BatchNormalization r {5} {5} {5} {5}*1; y = Reshape n [2,3,5]",
         "MatrixMultiply", NULL),
    ROWS("p = MatMul x {8x5}; q = Add p {5}; r = Reshape q [-1,5]; "
         "y = BatchNormalization r {5} {5} {5} {5}*1",
         "MatrixMultiply Shuffle", NULL),
    ROWS("p = MatMul x {8x3}; y = BatchNormalization p {3} {3} {3} {3}*1",
         "MatrixMultiply Scale", NULL),
    ROWS("p = MatMul x {8x5}; q = Add p {5}; y = Mul q {5}", "MatrixMultiply", NULL),
    ROWS("p = MatMul x {8x5}; y = Mul p {1x1x5}", "MatrixMultiply", NULL),
    ROWS("p = MatMul x {8x3}; y = Mul p {3x1}", "MatrixMultiply Scale", NULL),
    {"x=4x8", "p = Gemm x {8x4} {4x1}; y = Mul p {4}", "Constant MatrixMultiply Scale",
     NULL, NULL},
    ROWS("p = MatMul x {8x5}; y = Mul p p", "MatrixMultiply ElementWise", NULL),
    {"x=2x3x4x5",
     "p = ConvTranspose x {3x6x2x2} strides=2,2; y = BatchNormalization p {6} {6} {6} "
     "{6}*1",
     "Deconvolution", NULL, NULL},
    {"x=2x3x4x5",
     "p = ConvTranspose x {3x4x3x3} {4}; y = BatchNormalization p {4} {4} {4} {4}*1",
     "Deconvolution", NULL, NULL},
    {"x=2x4x4x5",
     "p = ConvTranspose x {4x2x3x3} group=2; y = BatchNormalization p {4} {4} {4} {4}*1",
     "Deconvolution Scale", NULL, NULL},
    /* rows of a table */
    {"x=2x3", "c = Cast x to=7; i = Clip c <0> <5>; y = Gather {6x4} i",
     "Cast Constant ElementWise Constant ElementWise Embedding", NULL, NULL},
    {"x=2x3", "c = Cast x to=7; g = Gather {6x4} c; y = Add g {1x3x4}", "Cast Embedding",
     NULL, NULL},
    {"x=2x3", "c = Cast x to=7; g = Gather {6x4} c; s = Add {4} g; y = Add s {3x4}",
     "Cast Embedding", NULL, NULL},
    {"x=2x3", "c = Cast x to=7; g = Gather {6x4} c; s = Add {3x1} g; y = Add s {1x1x1}",
     "Cast Embedding", NULL, NULL},
    {"x=2x3", "c = Cast x to=7; g = Gather {6x4} c; y = Add g {2x3x4}",
     "Cast Embedding Constant ElementWise", NULL, NULL},
    {"x=2x3",
     "c = Cast x to=7; g = Gather {6x4} c; s = Add g {3x4}; e = Expand {1x1x4} [2,3,4]; "
     "y = Add s e",
     "Cast Embedding", NULL, NULL},
    {"x=1x3", "c = Cast x to=7; g = Gather {6x4} c; y = Add g {1x1x3x4}",
     "Cast Embedding Constant ElementWise", NULL, NULL},
    /* images as rows */
    {"x=2x3x4x5", "f = Flatten x; y = Gemm f {6x60} {6} transB=1",
     "FullyConnected Shuffle", NULL, NULL},
    {"x=2x3x4x5", "f = Reshape x [2,60]; p = MatMul f {60x6}; y = Add p {6}",
     "FullyConnected Shuffle", "transposed = yes\n", NULL},
    {"x=2x3x4x5", "f = Reshape x [6,20]; y = MatMul f {20x6}", "Shuffle MatrixMultiply",
     NULL, NULL},
    {"x=2x3x4x5", "f = Flatten x; y = Gemm f {6x60} {6} transB=1 alpha=0.5",
     "Shuffle MatrixMultiply", NULL, NULL},
    {"x=2x8x3 w=2x8x5", "t = Transpose x perm=0,2,1; y = MatMul t w", "MatrixMultiply",
     "transpose_a = yes\n", NULL},
    {"x=2x3x8 w=2x5x8", "t = Transpose w perm=0,2,1; y = MatMul x t", "MatrixMultiply",
     "transpose_b = yes\n", NULL},
    {"x=2x8x3 w=2x5x8",
     "a = Mul x 0.5; s = Transpose a perm=0,2,1; b = Div w 4; t = Transpose b "
     "perm=0,2,1; "
     "p = MatMul s t; y = Mul p 3",
     "MatrixMultiply", "alpha = 0.375\n", NULL},
    {"x=2x3x8 w=5x2x8", "t = Transpose w perm=1,2,0; y = MatMul x t",
     "Shuffle MatrixMultiply", NULL, NULL},
    /* windows */
    {X, "c = Conv x {6x3x3x3}; y = Add c {6x1x1}", "Convolution", NULL, NULL},
    {X, "c = ConvTranspose x {3x6x3x3}; y = Add c {1x6x1x1}", "Deconvolution", NULL,
     NULL},
    {X, "c = Conv x {6x3x3x3}; y = Add c 0.5", "Convolution", NULL, NULL},
    {X, "c = Conv x {6x3x3x3}; y = Add c {3}", "Convolution Constant ElementWise", NULL,
     NULL},
    {X, "p = Pad x [0,0,1,2,0,0,0,1]; y = Conv p {6x3x3x3} {6} pads=1,0,0,0",
     "Convolution", "pad = 2, 2, 0, 1\n", NULL},
    {X, "p = Pad x [0,0,1,1,0,0,1,1]; y = AveragePool p kernel_shape=3,3 strides=2,2",
     "Pooling", "count_include_pad = yes\n", NULL},
    {X, "p = Pad x [0,0,1,1,0,0,1,1] 1.0; y = Conv p {6x3x3x3}", "Padding Convolution",
     NULL, NULL},
    {X, "p = Pad x [0,1,1,1,0,0,1,1]; y = Conv p {6x4x3x3}", "Padding Convolution", NULL,
     NULL},
    {X, "p = Pad x [0,0,1,1,0,0,1,1] mode=reflect; y = Conv p {6x3x3x3}",
     "Padding Convolution", NULL, NULL},
    {X, "p = Pad x [0,0,1,1,0,0,1,1]; y = AveragePool p kernel_shape=3,3 pads=1,1,1,1",
     "Padding Pooling", NULL, NULL},
    /* scales */
    {X, "f = Mul x {3x1x1}; y = Add f {1x3x1x1}", "Scale", "weights = w:y\n", NULL},
    {X, "f = Div x 4; y = Sub f 0.5", "Scale", "scale = 0.25\nshift = -0.5\n", NULL},
    {X, "y = Div x {3x1x1}", "Scale", NULL, NULL},
    {X, "y = Sub x {3x1x1}", "Scale", NULL, NULL},
    {X, "y = Sub 1 x", "Scale", "scale = -1\nshift = 1\n", NULL},
    {X, "y = Div 1 x", "Constant ElementWise", NULL, NULL},
    {X, "y = Mul x {4x5}", "Constant ElementWise", NULL, NULL},
    {"x=3x8", "y = Mul x {8}", "Scale", NULL, NULL},
    {"x=1x1x8", "y = Mul x {3x1}", "Constant ElementWise", NULL, NULL},
    /* a domain that is a plugin's namespace */
    {X, "y = core::Activation x kind=elu alpha=0.5", "core::Activation", "alpha = 0.5\n",
     NULL},
    {X, "y = core::Convolution x {6x3x3x3} {6} pad=1,", "core::Convolution", "pad = 1\n",
     NULL},
    {X, "y = core::Pooling x global=1 kind=average", "core::Pooling", "global = yes\n",
     NULL},
    /* rows of one product */
    {"x=3x2x8",
     CELL_WEIGHTS CELL("a", "0") CELL("b", "1")
         CELL("h", "-1") "d = Tanh a1; "
                         "e = Add d b1; f = Tanh e; y = Add f h1",
     "MatrixMultiply Slice Activation Slice ElementWise Activation Slice ElementWise "
     "Shuffle",
     "transpose_b = yes\n", NULL},
    {"x=2x3x8",
     "w = Identity {8x6}; " ROW_OF("a", "0")
         ROW_OF("b", "1") "c = MatMul a w; d = MatMul b w; y = Sub c d",
     "MatrixMultiply Slice Slice ElementWise Shuffle", NULL, NULL},
    {"x=3x2x8",
     "w = Identity {8x6}; a = Gather x <0> axis=1; b = Gather x <1> axis=-2; "
     "c = MatMul a w; d = MatMul b w; y = Sub c d",
     "MatrixMultiply Slice Slice ElementWise Shuffle", NULL, NULL},
    {"x=2x3x8",
     "w = Identity {8x6}; a,b,h = Split x axis=1 num_outputs=3; c = Squeeze a [1]; "
     "d = Squeeze h [1]; e = MatMul c w; f = MatMul d w; y = Sub e f",
     "MatrixMultiply Slice Slice ElementWise Shuffle", NULL, NULL},
    {"x=2x4x8",
     "w = Identity {8x6}; a,b,h = Split x [2,1,1] axis=1; c = Squeeze b [1]; "
     "d = Squeeze h [1]; e = MatMul c w; f = MatMul d w; y = Sub e f",
     "MatrixMultiply Slice Slice ElementWise Shuffle", NULL, NULL},
    /* one of two constants, fewer than half of the rows, others along the way */
    {"x=2x3x8",
     "w = Identity {8x6}; " ROW_OF("a", "0")
         ROW_OF("b", "1") "c = MatMul a w; d = MatMul b {8x6}; y = Sub c d",
     "Slice MatrixMultiply Slice MatrixMultiply ElementWise Shuffle", NULL, NULL},
    {"x=5x2x8",
     "w = Identity {8x6}; " ROW_OF("a", "0")
         ROW_OF("b", "1") "c = MatMul a w; d = MatMul b w; y = Sub c d",
     "Slice MatrixMultiply Slice MatrixMultiply ElementWise Shuffle", NULL, NULL},
    {"x=3x2x8", /* one row twice, and from the end */
     "w = Identity {8x6}; " ROW_OF("a", "1") ROW_OF("b", "1")
         ROW_OF("h", "-2") "c = MatMul a w; d = MatMul b w; e = MatMul h w; "
                           "f = Sub c d; y = Add f e",
     "Slice MatrixMultiply Slice MatrixMultiply ElementWise Slice MatrixMultiply "
     "ElementWise Shuffle",
     NULL, NULL},
    {"x=3x8x2",
     "w = Identity {8x6}; a = Gather x <0> axis=2; b = Gather x <1> axis=2; "
     "c = MatMul a w; d = MatMul b w; y = Sub c d",
     "Slice FullyConnected Shuffle Slice FullyConnected Shuffle ElementWise", NULL, NULL},
    {"x=2x2x8",
     "w = Identity {6x8}; v = Identity {6}; " ROW_OF("a", "0") ROW_OF(
         "b",
         "1") "c = Gemm a w v transB=1 alpha=0.5; d = Gemm b w v transB=1; y = Sub c d",
     "Slice MatrixMultiply Slice MatrixMultiply ElementWise Shuffle", NULL, NULL},
    /* operands that stretch */
    {"x=2x3x8 c=2x1x8", "e = Expand c [2,3,8]; y = Div x e", "ElementWise", NULL, NULL},
    {"x=2x3x8 c=2x1x8", "e = Expand c [2,3,8]; y = Add e x", "ElementWise", NULL, NULL},
    {"x=2x3x8 c=1x8", "e = Expand c [2,3,8]; y = Sub e x", "ElementWise", NULL, NULL},
    {"x=1x3x8 c=2x1x8", "e = Expand c [2,3,8]; y = Mul x e", "ElementWise", NULL, NULL},
    {"x=1x3x8 c=2x1x1", "e = Expand c [2,1,8]; y = Mul x e", "ElementWise", NULL, NULL},
    {"x=1x3x8 c=1x1x8", "e = Expand c [2,1,8]; y = Mul x e", "Expand ElementWise", NULL,
     NULL},
    /* shuffles */
    ROWS("a = Reshape x [2,3,2,4]; y = Transpose a perm=0,2,1,3", "Shuffle", NULL),
    ROWS("a = Transpose x perm=0,2,1; y = Reshape a [2,4,-1]", "Shuffle",
         "shape = 0, 4, 6\n"),
    ROWS("a = Transpose x perm=1,2,0; b = Reshape a [6,8]; y = Transpose b perm=1,0",
         "Shuffle", NULL),
    ROWS("a = Reshape x [2,3,2,4]; b = Transpose a perm=0,2,1,3; y = Reshape b [2,6,4]",
         "Shuffle Shuffle", NULL),
    ROWS("a = Flatten x; b = Unsqueeze a [1]; y = Reshape b [4,12]", "Shuffle", NULL),
    {"x=2x3x8", "g = Gather x <1> axis=1; y = Reshape g [2,4,2]", "Slice Shuffle",
     "shape = 0, 4, 2\n", NULL},
    {"x=2x3x8", "p = Pad x [0,0,0,0,0,0]; y = Sigmoid p", "Activation", NULL, NULL},
    ROWS("a = Transpose x perm=1,2,0; b = Transpose a perm=2,1,0; y = Sigmoid b",
         "Shuffle Activation", NULL),
    ROWS("a = Transpose x perm=1,2,0; b = Transpose a perm=2,0,1; y = Sigmoid b",
         "Activation", NULL),
};

TestSuite(patterns, .init = open_registry, .fini = close_registry);

Test(patterns, computes_the_same)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_case(&cases[i]);
}

Test(patterns, says_what_it_was_made_of)
{
    static const struct pattern_case c = {X, "s = Sigmoid x; y = Mul x s", "Activation",
                                          NULL, NULL};
    struct model_text *t = model_text_make(c.shapes, c.text, NULL);
    struct imported x;
    run(&x, &c, t, true);
    cr_expect(strstr(x.text, "# from: s\n[layer y]\n"), "%s", x.text);
    imported_free(&x);
    free(t);
}

/* Rows of a dim that is free. */
static const struct {
    const char *text;
    int64_t most; /* 0: no option tells */
    bool joined;
} free_rows[] = {
    {FREE_ROWS("x", "0", "#x2x8"), 0, false},
    {FREE_ROWS("x", "0", "#x2x8"), 3, true},
    {FREE_ROWS("x", "0", "#x2x8"), 512, false},
    {FREE_ROWS("x", "1", "2x#x8"), 0, false},
    {FREE_ROWS("x", "1", "2x#x8"), 4, true},
    {FREE_ROWS("u", "1", "#x2x8"), 0, false},
    {FREE_ROWS("u", "1", "#x2x8"), 4, true},
    /* it is another that is */
    {FREE_ROWS("x", "0", "2x#x8"), 0, true},
};

Test(patterns, rows_of_free_dims_are_joined_where_their_number_is_told)
{
    for (size_t i = 0; i < sizeof free_rows / sizeof free_rows[0]; i++) {
        struct free_model m = free_model_open(free_rows[i].text, "", "L", "");
        const struct import_symbol told = {.name = "L",
                                           .n = 1,
                                           .values = {free_rows[i].most},
                                           .range = true,
                                           .least = 2};
        const struct import_options o = {.symbols = &told,
                                         .n_symbols = free_rows[i].most > 0};
        struct imported x;
        strata_error err = {0};
        cr_assert_eq(imported_open(&x, m.onnx, m.registry, &o, &err), STRATA_OK, "%s",
                     err.message);
        cr_expect_eq(
            strstr(x.text, "= MatrixMultiply") &&
                !strstr(strstr(x.text, "= MatrixMultiply") + 1, "= MatrixMultiply"),
            free_rows[i].joined, "%d:\n%s", (int)i, x.text);
        cr_expect(strstr(x.text, "[profile]"), "%d: no size is free", (int)i);
        imported_free(&x);
        free_model_close(&m);
    }
}
