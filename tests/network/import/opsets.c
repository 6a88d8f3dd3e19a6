/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators of old opsets, and those of com.microsoft, give: models of constants
 * alone, whose outputs the importer works out.
 */
#include "tests/network/import/imported.h"

#define X "init x f 2x3 1 2 3 4 5 6\n"
#define Y "output y f 1\n"
/* 3 keys in all. */
#define GROUPED "ir 8\nopset 17\nopset com.microsoft 1\ninit t i32 - 3\n"

static const struct {
    const char *name, *text, *wanted;
} cases[] = {
    {"Add with an axis",
     "ir 3\nopset 6\n" X "init s f 2 10 20\n"
     "node Add x,s -> y axis=0 broadcast=1\n" Y,
     "2x3: 11 12 13 24 25 26"},
    {"Add of the last dims",
     "ir 3\nopset 6\n" X "init s f 3 10 20 30\n"
     "node Add x,s -> y broadcast=1\n" Y,
     "2x3: 11 22 33 14 25 36"},
    {"Mul with an axis from behind",
     "ir 3\nopset 6\n" X "init s f 2 10 20\n"
     "node Mul x,s -> y axis=-2 broadcast=1\n" Y,
     "2x3: 10 20 30 80 100 120"},
    {"PRelu a channel",
     "ir 3\nopset 6\ninit x f 1x2x2 -1 -2 -3 4\ninit s f 2 10 20\n"
     "node PRelu x,s -> y\n" Y,
     "1x2x2: -10 -20 -60 4"},
    {"Softmax of flattened dims",
     "ir 3\nopset 9\ninit x f 1x2x2 1 1 1 1\nnode Softmax x -> y\n" Y,
     "1x2x2: 0.25 0.25 0.25 0.25"},
    {"Softmax of one dim",
     "ir 3\nopset 12\ninit x f 1x2x1 1 1\nnode Softmax x -> y axis=1\n" Y,
     "1x2x1: 0.5 0.5"},
    {"Softmax since 13",
     "ir 7\nopset 13\ninit x f 1x2x2 1 1 1 1\nnode Softmax x -> y\n" Y,
     "1x2x2: 0.5 0.5 0.5 0.5"},
    {"Hardmax of flattened dims",
     "ir 3\nopset 11\ninit x f 1x2x2 1 3 4 2\nnode Hardmax x -> y\n" Y, "1x2x2: 0 0 1 0"},
    {"LogSoftmax of flattened dims",
     "ir 3\nopset 11\ninit x f 2x1x1 1 3\nnode LogSoftmax x -> y axis=0\n" Y,
     "2x1x1: -2.1269 -0.12693"},
    {"Reshape with an attribute",
     "ir 3\nopset 1\n" X "node Reshape x -> y shape=[3,2]\n" Y, "3x2: 1 2 3 4 5 6"},
    {"Squeeze and Unsqueeze with attributes",
     "ir 3\nopset 11\ninit x f 1x2 1 2\nnode Squeeze x -> a axes=[0]\n"
     "node Unsqueeze a -> y axes=[1]\n" Y,
     "2x1: 1 2"},
    {"Slice with attributes",
     "ir 3\nopset 9\n" X "node Slice x -> y starts=[1] ends=[3] axes=[1]\n" Y,
     "2x2: 2 3 5 6"},
    {"Split with an attribute",
     "ir 3\nopset 11\n" X "node Split x -> y,z axis=1 split=[1,2]\n"
     "output y\noutput z\n",
     "2x1: 1 4; 2x2: 2 3 5 6"},
    {"Split in equal parts",
     "ir 3\nopset 13\n" X "node Split x -> y,z\noutput y\noutput z\n",
     "1x3: 1 2 3; 1x3: 4 5 6"},
    {"Pad with paddings",
     "ir 3\nopset 1\ninit x f 2 1 2\nnode Pad x -> y paddings=[1,0] value=9f\n" Y,
     "3: 9 1 2"},
    {"Pad with attributes",
     "ir 3\nopset 10\ninit x f 2 1 2\nnode Pad x -> y pads=[0,2] value=7f\n" Y,
     "4: 1 2 7 7"},
    {"Clip with attributes", "ir 3\nopset 6\n" X "node Clip x -> y min=2f max=4f\n" Y,
     "2x3: 2 2 3 4 4 4"},
    {"Clip with one attribute", "ir 3\nopset 10\n" X "node Clip x -> y max=2f\n" Y,
     "2x3: 1 2 2 2 2 2"},
    {"TopK with an attribute",
     "ir 3\nopset 9\n" X "node TopK x -> y,i k=1\noutput y\noutput i\n",
     "2x1: 3 6; 2x1: 2 2"},
    {"Dropout with a ratio and is_test",
     "ir 3\nopset 6\n" X "node Dropout x -> y ratio=0.9f is_test=1\n" Y,
     "2x3: 1 2 3 4 5 6"},
    {"Cast to a type's name",
     "ir 3\nopset 1\ninit x f 2 1.5 -2.5\n"
     "node Cast x -> y to='INT64'\n" Y,
     "2: 1 -2"},
    {"Concat along the second axis", "ir 3\nopset 1\n" X "node Concat x,x -> y\n" Y,
     "2x6: 1 2 3 1 2 3 4 5 6 4 5 6"},
    {"Selu of fewer digits", "ir 3\nopset 1\ninit x f 1 10000\nnode Selu x -> y\n" Y,
     "1: 10507"},
    {"ReduceMean with axes", "ir 3\nopset 13\n" X "node ReduceMean x -> y axes=[0]\n" Y,
     "1x3: 2.5 3.5 4.5"},
    {"ReduceSum with axes",
     "ir 3\nopset 11\n" X "node ReduceSum x -> y axes=[1] keepdims=0\n" Y, "2: 6 15"},
    {"Tile along an axis",
     "ir 3\nopset 1\n" X "init n i 1 2\ninit a i 1 0\nnode Tile x,n,a -> y\n" Y,
     "4x3: 1 2 3 4 5 6 1 2 3 4 5 6"},
    {"Upsample with heights",
     "ir 3\nopset 1\ninit x f 1x1x1x2 1 2\n"
     "node Upsample x -> y height_scale=2f width_scale=2f\n" Y,
     "1x1x2x4: 1 1 2 2 1 1 2 2"},
    {"Upsample with scales",
     "ir 3\nopset 7\ninit x f 1x1x1x2 1 2\n"
     "node Upsample x -> y scales=[1f,1f,1f,3f]\n" Y,
     "1x1x1x6: 1 1 1 2 2 2"},
    {"Upsample with an input",
     "ir 3\nopset 9\ninit x f 1x1x1x2 1 3\ninit s f 4 1 1 1 2\n"
     "node Upsample x,s -> y mode='linear'\n" Y,
     "1x1x1x4: 1 2 3 3"},
    {"Resize of opset 10",
     "ir 3\nopset 10\ninit x f 1x1x1x4 1 2 3 4\ninit s f 4 1 1 1 0.5\n"
     "node Resize x,s -> y\n" Y,
     "1x1x1x2: 1 3"},
    {"Scatter",
     "ir 3\nopset 9\n" X "init i i 1x1 2\ninit u f 1x1 9\n"
     "node Scatter x,i,u -> y axis=1\n" Y,
     "2x3: 1 2 9 4 5 6"},
    {"GroupNormalization a group",
     "ir 8\nopset 18\ninit x f 1x4x1 1 3 5 9\ninit s f 2 1 2\ninit b f 2 10 20\n"
     "node GroupNormalization x,s,b -> y num_groups=2 epsilon=0f\n" Y,
     "1x4x1: 9 11 18 22"},
    {"BatchNormalization of opset 8",
     "ir 3\nopset 8\ninit x f 1x2 1 3\ninit s f 2 1 2\ninit b f 2 0 1\n"
     "init m f 2 1 1\ninit v f 2 1 4\n"
     "node BatchNormalization x,s,b,m,v -> y epsilon=0f spatial=1\n" Y,
     "1x2: 0 3"},
    {"LpPool with a real order",
     "ir 3\nopset 1\ninit x f 1x1x2 3 4\nnode LpPool x -> y p=2f kernel_shape=[2]\n" Y,
     "1x1x1: 5"},
    {"GridSample, whose modes had other names",
     "ir 8\nopset 16\ninit x f 1x1x1x2 1 3\ninit g f 1x1x1x2 0 0\n"
     "node GridSample x,g -> y align_corners=1 mode='bilinear'\n" Y,
     "1x1x1x1: 2"},
    {"RoiAlign, whose corners were those of pixels",
     "ir 8\nopset 10\ninit x f 1x1x2x2 1 2 3 4\ninit r f 1x4 0 0 1 1\ninit b i 1 0\n"
     "node RoiAlign x,r,b -> y sampling_ratio=1\n" Y,
     "1x1x1x1: 2.5"},
    {"BiasGelu",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1 1\ninit b f 1 1\n"
     "node com.microsoft::BiasGelu x,b -> y\n" Y,
     "1: 1.9545"},
    {"FastGelu",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1 2\n"
     "node com.microsoft::FastGelu x -> y\n" Y,
     "1: 1.9546"},
    {"QuickGelu",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1 2\n"
     "node com.microsoft::QuickGelu x -> y\n" Y,
     "1: 1.9357"},
    {"SkipLayerNormalization with its sum",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1x2 1 2\ninit k f 1x2 1 4\n"
     "init g f 2 1 10\ninit b f 2 0 5\ninit c f 2 1 1\n"
     "node com.microsoft::SkipLayerNormalization x,k,g,b,c -> y,_,_,s epsilon=0f\n"
     "output y\noutput s\n",
     "1x2: -1 15; 1x2: 3 7"},
    {"SkipSimplifiedLayerNormalization",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1x2 1 3\ninit k f 1x2 2 1\n"
     "init g f 2 1 10\n"
     "node com.microsoft::SkipSimplifiedLayerNormalization x,k,g -> y epsilon=0f\n" Y,
     "1x2: 0.84853 11.314"},
    {"SimplifiedLayerNormalization",
     "ir 8\nopset 17\ninit x f 1x2 3 4\ninit g f 2 1 1\n"
     "node SimplifiedLayerNormalization x,g -> y epsilon=0f\n" Y,
     "1x2: 0.84853 1.1314"},
    {"FusedMatMul",
     "ir 8\nopset 17\nopset com.microsoft 1\n" X "init w f 2x1 1 10\n"
     "node com.microsoft::FusedMatMul x,w -> y transA=1 alpha=2f\n" Y,
     "3x1: 82 104 126"},
    {"FusedConv",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1x1x2 1 -2\n"
     "init w f 1x1x1 3\ninit b f 1 1\ninit z f 1x1x2 5 1\n"
     "node com.microsoft::FusedConv x,w,b,z -> y activation='Relu'\n" Y,
     "1x1x2: 9 0"},
    {"NhwcMaxPool",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1x1x2x2 1 5 3 2\n"
     "node com.microsoft::NhwcMaxPool x -> y kernel_shape=[1,2]\n" Y,
     "1x1x1x2: 3 5"},
    {"MaxPool of bytes",
     "ir 8\nopset 17\ninit x c 1x1x2x2 -128 -7 3 127\n"
     "node MaxPool x -> y kernel_shape=[1,2]\n" Y,
     "1x1x2x1: -7 127"},
    {"QLinearAdd",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit a u 2 10 20\n"
     "init s f - 0.5\ninit z u - 0\ninit b u 2 4 6\ninit q f - 1\n"
     "node com.microsoft::QLinearAdd a,s,z,b,s,z,q,z -> y\n" Y,
     "2: 7 13"},
    {"QLinearConcat",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit a u 2 10 20\n"
     "init s f - 0.5\ninit z u - 0\ninit q f - 1\n"
     "node com.microsoft::QLinearConcat q,z,a,s,z,a,q,z -> y axis=0\n" Y,
     "4: 5 10 10 20"},
    {"QLinearSigmoid",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit a u 1 0\n"
     "init s f - 1\ninit z u - 0\ninit q f - 0.125\ninit p u - 3\n"
     "node com.microsoft::QLinearSigmoid a,s,z,q,p -> y\n" Y,
     "1: 7"},
    /* Halves of e^0 and e^1: 1/(1 + e) and e/(1 + e). */
    {"Resize of integers, as by QLinear models",
     "ir 8\nopset 17\ninit x c 1x1x1x2 -7 4\ninit s f 4 1 1 1 2\n"
     "node Resize x,_,s -> y mode='linear' "
     "coordinate_transformation_mode='asymmetric'\n" Y,
     "1x1x1x4: -7 -1 4 4"},
    {"QLinearSoftmax",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit a u 1x2 2 3\n"
     "init s f - 1\ninit z u - 2\ninit q f - 0.00390625\ninit p u - 0\n"
     "node com.microsoft::QLinearSoftmax a,s,z,q,p -> y axis=1 opset=12\n" Y,
     "1x2: 69 187"},
    {"QLinearSoftmax without an axis",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit a u 1x2x2 2 3 3 2\n"
     "init s f - 1\ninit z u - 2\ninit q f - 0.00390625\ninit p u - 0\n"
     "node com.microsoft::QLinearSoftmax a,s,z,q,p -> y opset=12\n" Y,
     "1x2x2: 69 187 187 69"},
    {"QLinearWhere",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit c b 2 1 0\ninit a u 2 10 20\n"
     "init s f - 0.5\ninit z u - 0\ninit b u 2 4 6\ninit q f - 1\n"
     "node com.microsoft::QLinearWhere c,a,s,z,b,q,z,s,z -> y\n" Y,
     "2: 10 12"},
    /* (1 2 - 1)*0.5 by rows of (3 5 and -1 4)*(2, 1) and c*0.5*(2, 1). */
    {"QGemm with a transposed matrix",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit a u 1x2 2 3\ninit s f - 0.5\n"
     "init z u - 1\ninit w c 2x2 3 5 -1 4\ninit t f 2 2 1\ninit v c 2 0 0\n"
     "init c i32 2 4 -2\n"
     "node com.microsoft::QGemm a,s,z,w,t,v,c -> y transB=1\n" Y,
     "1x2: 17 2.5"},
    {"QGemm with a scale of its result, and alpha",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit a u 1x2 2 3\ninit s f - 0.5\n"
     "init z u - 1\ninit w c 2x1 3 5\ninit t f - 2\ninit v c - 0\n"
     "init c i32 1 4\ninit q f - 0.5\ninit p u - 10\n"
     "node com.microsoft::QGemm a,s,z,w,t,v,c,q,p -> y alpha=2f\n" Y,
     "1x1: 78"},
    /* (1 2, 3 5) by (2 2, -128 254), and by (7 -2, 3 1). */
    {"MatMulInteger of bytes without a sign, a zero point a row and a column",
     "ir 8\nopset 21\ninit a u 2x2 2 3 5 7\ninit z u 2 1 2\n"
     "init w u 2x2 130 3 0 255\ninit q u 2 128 1\n"
     "node MatMulInteger a,w,z,q -> s\nnode Cast s -> y to=1\n" Y,
     "2x2: -254 510 -634 1276"},
    {"MatMulInteger of bytes, a zero point of one",
     "ir 8\nopset 21\ninit a u 2x2 2 3 5 7\ninit z u 2 1 2\n"
     "init w c 2x2 8 -1 4 2\ninit q c - 1\n"
     "node MatMulInteger a,w,z,q -> s\nnode Cast s -> y to=1\n" Y,
     "2x2: 13 0 36 -1"},
    {"MatMulIntegerToFloat",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit a u 1x2 2 3\ninit s f - 0.5\n"
     "init z u - 1\ninit w c 2x2 3 5 -1 4\ninit t f 2 2 1\ninit b f 2 100 200\n"
     "node com.microsoft::MatMulIntegerToFloat a,w,s,t,z,_,b -> y\n" Y,
     "1x2: 101 206.5"},
    /* Gates of 100, 100 and -100, and tanh 100: tanh 1. */
    {"DynamicQuantizeLSTM",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1x1x1 1\n"
     "init w c 1x1x4 11 19 -9 21\ninit s f 1x4 10 5 10 5\ninit z c 1x4 1 -1 1 1\n"
     "init r c 1x1x4 0 0 0 0\ninit t f 1 1\ninit u c 1 0\n"
     "node com.microsoft::DynamicQuantizeLSTM x,w,r,_,_,_,_,_,s,z,t,u -> y "
     "hidden_size=1\n" Y,
     "1x1x1x1: 0.76159"},
    /* Gates of 2, 2, 0 and 2, each of two products of 255*127, above 16 bits in all. */
    {"DynamicQuantizeLSTM of sums above 16 bits",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1x1x2 1 1\n"
     "init w c 1x2x4 127 127 0 127 127 127 0 127\ninit s f 1 0.00787402\ninit z c 1 0\n"
     "init r c 1x1x4 0 0 0 0\n"
     "node com.microsoft::DynamicQuantizeLSTM x,w,r,_,_,_,_,_,s,z,s,z -> y "
     "hidden_size=1\n" Y,
     "1x1x1x1: 0.60828"},
    {"DynamicQuantizeMatMul",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1x2 0 255\n"
     "init w c 2x2 3 5 -1 4\ninit t f - 2\ninit b f 2 1 2\n"
     "node com.microsoft::DynamicQuantizeMatMul x,w,t,_,b -> y\n" Y,
     "1x2: -509 2042"},
    /* 0x9a holds 10, then 9; the last of 9 columns is in a second block. */
    {"MatMulNBits",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1x9 1 1 0 0 0 0 0 0 1\n"
     "init w u 1x2x4 154 0 0 0 11 0 0 0\ninit s f 2 0.5 10\ninit z u 1 119\n"
     "init b f 1 100\n"
     "node com.microsoft::MatMulNBits x,w,s,z,_,b -> y K=9 N=1 block_size=8\n" Y,
     "1x1: 142.5"},
    {"MatMulNBits with zero points",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1x8 1 1 0 0 0 0 0 0\n"
     "init w u 1x1x4 154 0 0 0\ninit s f 1 0.5\ninit z u 1 1\n"
     "node com.microsoft::MatMulNBits x,w,s,z -> y K=8 N=1 bits=4 block_size=8\n" Y,
     "1x1: 8.5"},
    /* Each column has a block of its own: 0x9a holds 10, then 9. */
    {"MatMulNBits with floats as zero points",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1x16 1 1 0 0 0 0 0 0 1 0 0 0 0 0 0 "
     "0\n"
     "init w u 1x2x4 154 0 0 0 11 0 0 0\ninit s f 2 0.5 10\ninit z f 2 1.5 10.5\n"
     "node com.microsoft::MatMulNBits x,w,s,z -> y K=16 N=1 block_size=8\n" Y,
     "1x1: 13"},
    /* A row of two, one column in the second block; bytes less 127.5 and 1. */
    {"MatMulNBits of 8 bits with floats as zero points",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1x2x9 1 1 0 0 0 0 0 0 1 "
     "0 0 0 0 2 0 0 0 -1\n"
     "init w u 1x2x8 154 2 0 0 255 0 0 0 11 0 0 0 0 0 0 0\ninit s f 2 0.5 10\n"
     "init z f 2 127.5 1\n"
     "node com.microsoft::MatMulNBits x,w,s,z -> y K=9 N=1 bits=8 block_size=8\n" Y,
     "1x2x1: 50.5 27.5"},
    {"MatMulNBits with blocks of columns in any order",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1x16 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 "
     "0\n"
     "init w u 1x2x4 154 0 0 0 0 0 0 0\ninit s f 2 0.5 10\n"
     "init g i 16 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
     "node com.microsoft::MatMulNBits x,w,s,_,g -> y K=16 N=1 block_size=8\n" Y,
     "1x1: 20.5"},
    {"GatherBlockQuantized of 4 bits",
     "ir 8\nopset 17\nopset com.microsoft 1\n"
     "init w u 2x8 154 0 0 0 0 0 0 0 33 0 0 0 67 0 0 0\ninit i i 1 1\n"
     "init s f 2x1 1 0.5\ninit z u 2x1 0 1\n"
     "node com.microsoft::GatherBlockQuantized w,i,s,z -> y bits=4 block_size=16\n" Y,
     "1x16: 0 0.5 -0.5 -0.5 -0.5 -0.5 -0.5 -0.5 1 1.5 -0.5 -0.5 -0.5 -0.5 -0.5 -0.5"},
    {"GatherBlockQuantized of 8 bits",
     "ir 8\nopset 17\nopset com.microsoft 1\n"
     "init w u 2x8 0 1 2 3 4 5 6 7 130 129 128 127 126 0 1 2\ninit i i 1 1\n"
     "init s f 2x1 1 0.5\n"
     "node com.microsoft::GatherBlockQuantized w,i,s -> y bits=8 block_size=16\n" Y,
     "1x8: 1 0.5 0 -0.5 -1 -64 -63.5 -63"},
    {"MultiHeadAttention, biased",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit q f 1x1x2 1 2\ninit v f 1x1x2 3 4\n"
     "init b f 6 0 0 0 0 10 20\n"
     "node com.microsoft::MultiHeadAttention q,q,v,b -> y num_heads=2\n" Y,
     "1x1x2: 13 24"},
    {"MultiHeadAttention of keys that a mask leaves",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit q f 1x2x2 1 2 3 4\n"
     "init m i32 1x2 0 1\n"
     "node com.microsoft::MultiHeadAttention q,q,q,_,m -> y num_heads=1\n" Y,
     "1x2x2: 3 4 3 4"},
    {"Attention, packed, of the keys of a mask",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1x2x2 1 0 0 1\n"
     "init w f 2x6 1 0 1 0 1 0 0 1 0 1 0 1\ninit b f 6 0 0 0 0 10 20\n"
     "init m i32 1x2 1 0\n"
     "node com.microsoft::Attention x,w,b,m -> y num_heads=1\n" Y,
     "1x2x2: 11 20 11 20"},
    {"Attention, packed, of so many keys, values of a size of their own",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1x2x2 1 0 0 1\n"
     "init w f 2x5 1 0 1 0 7 0 1 0 1 9\ninit m i32 1 1\n"
     "node com.microsoft::Attention x,w,_,m -> y num_heads=1 "
     "qkv_hidden_sizes=[2,2,1]\n" Y,
     "1x2x1: 7 7"},
    {"QAttention of the keys of a mask, with zero points",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x u 1x2x2 3 2 2 3\n"
     "init w c 2x6 2 1 2 1 2 1 1 2 1 2 1 2\ninit b f 6 0 0 0 0 10 20\n"
     "init s f - 0.5\ninit t f - 2\ninit m i32 1x2 1 0\ninit z u - 2\n"
     "init v c - 1\n"
     "node com.microsoft::QAttention x,w,b,s,t,m,z,v -> y num_heads=1\n" Y,
     "1x2x2: 11 20 11 20"},
    {"QAttention, of no later keys",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x u 1x2x1 1 3\n"
     "init w c 1x3 0 0 4\ninit b f 3 0 0 1\ninit s f - 0.5\ninit t f - 2\n"
     "node com.microsoft::QAttention x,w,b,s,t -> y num_heads=1 unidirectional=1\n" Y,
     "1x2x1: 5 9"},
    /* Queries of 0: the mean of the values that a query sees. */
    {"GroupQueryAttention, packed",
     GROUPED "init q f 1x2x8 0 0 0 0 6 6 1 3 0 0 0 0 7 7 5 7\ninit n i32 1 1\n"
             "node com.microsoft::GroupQueryAttention q,_,_,_,_,n,t -> y num_heads=2 "
             "kv_num_heads=1\n" Y,
     "1x2x4: 1 3 1 3 3 5 3 5"},
    {"GroupQueryAttention of a window",
     GROUPED "init q f 1x2x8 0 0 0 0 6 6 1 3 0 0 0 0 7 7 5 7\ninit n i32 1 1\n"
             "node com.microsoft::GroupQueryAttention q,_,_,_,_,n,t -> y num_heads=2 "
             "kv_num_heads=1 local_window_size=1\n" Y,
     "1x2x4: 1 3 1 3 5 7 5 7"},
    {"GroupQueryAttention of a past",
     GROUPED "init q f 1x2x4 0 0 0 0 0 0 0 0\ninit k f 1x2x2 6 6 7 7\n"
             "init v f 1x2x2 1 3 5 7\ninit a f 1x1x1x2 8 8\ninit b f 1x1x1x2 3 5\n"
             "init n i32 1 2\n"
             "node com.microsoft::GroupQueryAttention q,k,v,a,b,n,t -> y,c,d num_heads=2 "
             "kv_num_heads=1\noutput y\noutput c\noutput d\n",
     "1x2x4: 2 4 2 4 3 5 3 5; 1x1x3x2: 8 8 6 6 7 7; 1x1x3x2: 3 5 1 3 5 7"},
    {"GroupQueryAttention, rotated behind its past",
     GROUPED "init q f 1x1x2 0 0\ninit k f 1x1x2 1 2\ninit v f 1x1x2 1 3\n"
             "init a f 1x1x2x2 8 8 9 9\ninit b f 1x1x2x2 4 0 1 3\ninit n i32 1 2\n"
             "init e f 3x1 1 1 0\ninit f f 3x1 0 0 1\n"
             "node com.microsoft::GroupQueryAttention q,k,v,a,b,n,t,e,f -> y,c "
             "num_heads=1 kv_num_heads=1 do_rotary=1\noutput y\noutput c\n",
     "1x1x2: 2 2; 1x1x3x2: 8 8 9 9 -2 1"},
    {"Attention, packed, behind a past",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1x1x1 1\ninit w f 1x3 0 2 4\n"
     "init p f 2x1x1x1x1 7 8\n"
     "node com.microsoft::Attention x,w,_,_,p -> y,r num_heads=1 unidirectional=1\n"
     "output y\noutput r\n",
     "1x1x1: 6; 2x1x1x2x1: 7 2 8 4"},
    {"EmbedLayerNormalization with its sum, and the mask's",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit i i32 1x2 0 1\n"
     "init w f 2x2 1 3 0 0\ninit p f 3x2 0 0 2 4 9 9\ninit g f 2 1 10\n"
     "init b f 2 0 5\ninit m i32 1x2 1 0\n"
     "node com.microsoft::EmbedLayerNormalization i,_,w,p,_,g,b,m -> y,c,s "
     "epsilon=0f\noutput y\noutput c\noutput s\n",
     "1x2x2: -1 15 -1 15; 1: 1; 1x2x2: 1 3 2 4"},
    {"NonZero of a constant",
     "ir 8\nopset 13\ninit x f 2x3 0 1 0 2 0 3\nnode NonZero x -> y\noutput y\n",
     "2x3: 0 1 1 1 0 2"},
    {"RotaryEmbedding",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1x1x1x2 1 2\ninit p i 1x1 1\n"
     "init c f 2x1 1 0\ninit s f 2x1 0 1\n"
     "node com.microsoft::RotaryEmbedding x,p,c,s -> y\n" Y,
     "1x1x1x2: -2 1"},
    {"RotaryEmbedding from one place, heads by the tables",
     "ir 8\nopset 17\nopset com.microsoft 1\ninit x f 1x2x2 1 2 3 4\ninit p i 1 1\n"
     "init c f 3x1 1 0 1\ninit s f 3x1 0 1 0\n"
     "node com.microsoft::RotaryEmbedding x,p,c,s -> y\n" Y,
     "1x2x2: -2 1 3 4"},
    {"Max of integers and 0",
     "ir 8\nopset 17\ninit x i 2 -3 3\ninit z i 1 0\nnode Max x,z -> y\n" Y, "2: 0 3"},
};

Test(import_opsets, what_old_operators_give)
{
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        expect_values(cases[i].name, cases[i].text, cases[i].wanted);
}

Test(import_opsets, what_has_no_meaning_now)
{
    static const struct {
        const char *name, *text, *what;
    } refused[] = {
        {"spatial",
         "ir 3\nopset 8\ninput x f 1x2\ninit s f 2 1 1\n"
         "node BatchNormalization x,s,s,s,s -> y spatial=0\n" Y,
         "'spatial' is 0"},
        {"an output of training",
         "ir 3\nopset 9\ninput x f 1x2\ninit s f 2 1 1\n"
         "node BatchNormalization x,s,s,s,s -> y,m\n" Y "output m\n",
         "only training makes"},
        {"an axis out of range",
         "ir 3\nopset 6\ninput x f 2x3\ninit s f 3 1 1 1\n"
         "node Add x,s -> y axis=2 broadcast=1\n" Y,
         "axis 2 with operands of 2 and 1 dims"},
        {"a type by a wrong name",
         "ir 3\nopset 1\ninput x f 1\nnode Cast x -> y to='REAL'\n" Y,
         "'to' = 'REAL' is no type"},
        {"a softmax of all behind its axis",
         "ir 8\nopset 17\nopset com.microsoft 1\ninput a u 1x2x2\ninit s f - 1\n"
         "init z u - 2\n"
         "node com.microsoft::QLinearSoftmax a,s,z,s,z -> y axis=1 opset=12\n" Y,
         "axis 1 of opset 12 is not the last"},
        {"attention with a cache of fixed length",
         "ir 8\nopset 17\nopset com.microsoft 1\ninput x f 1x2x2\ninit w f 2x6 1 0 1 0 1 "
         "0 "
         "0 1 0 1 0 1\ninput p f 2x1x1x3x2\n"
         "node com.microsoft::Attention x,w,_,_,p -> y num_heads=1 "
         "past_present_share_buffer=1\n" Y,
         "it is taken without a cache of fixed length"},
        {"grouped queries with a softer softmax",
         GROUPED "input q f 1x2x6\ninput n i32 1\n"
                 "node com.microsoft::GroupQueryAttention q,_,_,_,_,n,t -> y num_heads=1 "
                 "kv_num_heads=1 smooth_softmax=1\n" Y,
         "'smooth_softmax' is 1; 0 is taken"},
        {"grouped queries with a sink",
         GROUPED "input q f 1x2x6\ninput n i32 1\ninput h f 1\n"
                 "node com.microsoft::GroupQueryAttention q,_,_,_,_,n,t,_,_,_,_,h -> y "
                 "num_heads=1 kv_num_heads=1\n" Y,
         "input 'head_sink' is given"},
        {"grouped queries with half a past",
         GROUPED "input q f 1x2x6\ninput n i32 1\ninput a f 1x1x1x2\n"
                 "node com.microsoft::GroupQueryAttention q,_,_,a,_,n,t -> y "
                 "num_heads=1 kv_num_heads=1\n" Y,
         "and so past_key and past_value"},
        {"grouped queries, rotated by nothing",
         GROUPED "input q f 1x2x6\ninput n i32 1\n"
                 "node com.microsoft::GroupQueryAttention q,_,_,_,_,n,t -> y "
                 "num_heads=1 kv_num_heads=1 do_rotary=1\n" Y,
         "'do_rotary' needs cos_cache and sin_cache"},
        {"QAttention with no bias",
         "ir 8\nopset 17\nopset com.microsoft 1\ninput x u 1x2x1\ninit w c 1x3 0 0 4\n"
         "init s f - 0.5\n"
         "node com.microsoft::QAttention x,w,_,s,s -> y num_heads=1\n" Y,
         "it must have a bias and two scales"},
        {"experts",
         "ir 8\nopset 17\nopset com.microsoft 1\ninput x f 1x2\n"
         "node com.microsoft::MoE x,x,x,_,x -> y\n" Y,
         "experts are chosen by values"},
        {"no outputs", "ir 8\nopset 13\ninput x f 1\nnode Abs x -> y\n",
         "the model has no outputs"},
        {"an old file", "ir 2\nopset 1\ninput x f 1\nnode Abs x -> y\n" Y,
         "IR version 2 is older than 3"},
        {"the opset in the message",
         "ir 3\nopset 9\ninput x f 1\nnode Softmaxx x -> y\n" Y, "(Softmaxx, opset 9)"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(refused); i++)
        expect_import_refused(refused[i].name, refused[i].text, refused[i].what);
}

Test(import_opsets, newer_ones_are_read)
{
    expect_values("opset 99", "ir 99\nopset 99\n" X "node Relu x -> y\n" Y,
                  "2x3: 1 2 3 4 5 6");
}

/* Before IR 4, initializers were inputs, too. */
Test(import_opsets, initializers_that_are_inputs)
{
    char *text = imported_text("ir 3\nopset 9\ninput x f 2\ninput w f 2\ninit w f 2 1 2\n"
                               "node Add x,w -> y\n" Y);
    cr_expect_not_null(strstr(text, "[input x]"), "%s", text);
    cr_expect_null(strstr(text, "[input w]"), "%s", text);
    free(text);
}

Test(import_opsets, an_output_that_stands_twice)
{
    char *text = imported_text("ir 8\nopset 13\ninput x f 2\nnode Relu x -> y\n" Y Y);
    cr_expect_not_null(strstr(text, "outputs = y\n"), "%s", text);
    free(text);
}
