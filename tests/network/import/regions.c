/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows in whatever order: heads of sequences that come before their batches, masks that
 * fill, and parts of a network that work row by row.
 */
#include "tests/network/import/pattern_case.h"

/* The same as nn.MultiheadAttention says it: sequences before batches. */
#define SECOND(part, from, length)                                                       \
    part "1 = Reshape " from " [" length ",6,8]; " part "2 = Transpose " part            \
         "1 perm=1,0,2; " part " = Reshape " part "2 [2,3," length ",8]; "
#define SECOND_JOIN                                                                      \
    "z = Transpose k perm=0,1,3,2; p = MatMul q z; w = Softmax p axis=-1; "              \
    "o = MatMul w v; t = Transpose o perm=2,0,1,3; j = Reshape t [10,24]; "              \
    "g = Gemm j {24x24} {24} transB=1; r = Reshape g [5,2,24]; "
#define TURN(to, from) to " = Transpose " from " perm=1,0,2"

static const struct pattern_case cases[] = {
    /* batches behind sequences: a block of torchvision's ViT, and one of a sequence that
     * reads another */
    {"x=2x5x24",
     "l = LayerNormalization x {24} {24}; " TURN(
         "a",
         "l") "; m = MatMul a {24x72}; b = Add m {72}; u = Reshape b [1,5,2,3,24]; "
              "h = Transpose u perm=3,1,2,0,4; s = Squeeze h [3]; q0 = Gather s <0>; "
              "k0 = Gather s <1>; v0 = Gather s <2>; " SECOND("q", "q0", "5")
                  SECOND("k", "k0", "5") SECOND("v", "v0", "5")
                      SECOND_JOIN TURN("f", "r") "; y = Add f x",
     "Normalization MatrixMultiply Attention MatrixMultiply ElementWise",
     "heads = 3\nscale = 1\n", NULL},
    {"x=5x2x24 d=7x2x24",
     "a = MatMul x {24x24}; b = MatMul d {24x48}; c = Add b {48}; u = Reshape c "
     "[7,2,2,24]; h = Transpose u perm=2,0,1,3; k0 = Gather h <0>; v0 = Gather h "
     "<1>; " SECOND("q", "a", "5") SECOND("k", "k0", "7") SECOND("v", "v0", "7")
         SECOND_JOIN "y = Relu r",
     "MatrixMultiply Shuffle Shuffle MatrixMultiply MatrixMultiply Attention "
     "MatrixMultiply Activation Shuffle",
     "heads = 3\nscale = 1\n", NULL},
    /* columns of what is no product */
    {"x=2x5x24 d=2x7x48",
     QUERIES("x") "e = Sigmoid d; f = Slice e [0] [24] [2]; i = Slice e [24] [48] "
                  "[2]; " KEYS("f") VALUES("i") "p = MatMul q k; " SHARES("p") JOIN,
     "Activation Slice Slice Attention", NULL, NULL},
    /* scores that are filled */
    {APART,
     QUERIES("x") KEYS("d") VALUES(
         "e") "p = MatMul q k; c = Greater {5x7} 0; s = Where c p -10000; " SHARES("s")
         JOIN,
     "Constant Attention", "heads = 3\nscale = 1\n", NULL},
    {APART,
     QUERIES("x") KEYS("d")
         VALUES("e") "p = MatMul q k; c = Greater {1x1x5x7} 0; s = Where c -1e30 p; "
                     "r = Add s {5x7}; " SHARES("r") JOIN,
     "Constant Attention", NULL, NULL},
    {APART " m=2x1x1x7",
     QUERIES("x") KEYS("d") VALUES(
         "e") "p = MatMul q k; c = Greater m -1; s = Where c p -1e30; " SHARES("s") JOIN,
     "Constant Compare Constant Constant Select Attention", NULL, NULL},
    {"x=2x3x5x8 d=2x3x8x7 e=2x3x7x4",
     "p = MatMul x d; c = Greater {5x7} 0; s = Where c p -5; w = Softmax s axis=-1; "
     "y = MatMul w e",
     "MatrixMultiply Constant Constant Select Softmax MatrixMultiply", NULL, NULL},
    {"x=2x3x5x8 d=2x3x8x7 e=2x3x7x4",
     "p = MatMul x d; c = Greater {5x7} 3; s = Where c p -10000; w = Softmax s axis=-1; "
     "y = MatMul w e",
     "MatrixMultiply Constant Constant Select Softmax MatrixMultiply", NULL, NULL},
    /* orders of rows */
    ROWS(TURN("a", "x") "; p = MatMul a {8x5}; " TURN("y", "p"), "MatrixMultiply", NULL),
    ROWS(TURN("a", "x") "; f = Reshape a [6,8]; g = Gemm f {5x8} {5} transB=1 alpha=0.5; "
                        "r = Reshape g [3,2,5]; " TURN("y", "r"),
         "MatrixMultiply", "transpose_b = yes\nalpha = 0.5\n"),
    ROWS(TURN("a", "x") "; l = LayerNormalization a {8} {8}; p = MatMul l {8x8}; "
                        "s = Sigmoid p; m = Mul s {1x1x8}; r = Add m a; " TURN("y", "r"),
         "Normalization MatrixMultiply Activation Constant ElementWise ElementWise",
         NULL),
    ROWS(TURN("a", "x") "; s = Softmax a axis=2; c = Concat s a axis=2; " TURN("y", "c"),
         "Softmax Concatenation", "axis = 2\n"),
    {"x=2x3x4x8",
     "a = Transpose x perm=2,0,1,3; p = MatMul a {8x5}; y = Transpose p perm=1,2,0,3",
     "MatrixMultiply", NULL, NULL},
    {"x=2x3x4x8",
     "a = Transpose x perm=2,0,1,3; p = MatMul a {8x8}; y = Transpose p perm=0,2,1,3",
     "MatrixMultiply Shuffle", "first = 2, 1, 0, 3\n", NULL},
    {"x=2x4x6x8",
     "a = Reshape x [2,2,2,3,2,8]; b = Transpose a perm=0,1,3,2,4,5; c = Reshape b "
     "[12,4,8]; p = MatMul c {8x8}; d = Reshape p [2,2,3,2,2,8]; e = Transpose d "
     "perm=0,1,3,2,4,5; y = Reshape e [2,4,6,8]",
     "MatrixMultiply", NULL, NULL},
    /* rows are moved where they are short */
    ROWS(TURN("a", "x") "; p = MatMul a {8x5}; y = Sigmoid p",
         "MatrixMultiply Activation Shuffle", NULL),
    ROWS(TURN("a", "x") "; p = MatMul a {8x9}; y = Sigmoid p",
         "Shuffle MatrixMultiply Activation", NULL),
    {"x=2x3x8", TURN("a", "x") "; p = MatMul a {8x5}; " TURN("y", "p"),
     "MatrixMultiply Shuffle", NULL, "a"},
    {"x=2x3x8", TURN("a", "x") "; p = MatMul a {8x5}; " TURN("y", "p"),
     "MatrixMultiply Shuffle", NULL, "p"},
    /* one that is part of what is moved anyway */
    {"x=7x2x3x8",
     "a = Transpose x perm=0,2,1,3; r = Reshape a [7,3,16]; " TURN(
         "t", "r") "; p = MatMul t {16x5}; y = Sigmoid p",
     "Shuffle MatrixMultiply Activation", NULL, NULL},
    {"x=7x3x5",
     "p = MatMul x {5x16}; " TURN("t", "p") "; r = Reshape t [3,7,2,8]; y = Transpose r "
                                            "perm=0,2,1,3",
     "MatrixMultiply Shuffle", NULL, NULL},
    /* a matrix that is one for all, and no constant */
    {"x=2x3x8 w=8x5", TURN("a", "x") "; p = MatMul a w; " TURN("y", "p"),
     "MatrixMultiply", NULL, NULL},
    /* along the rows; with other numbers for each row; with the last dim */
    ROWS(TURN("a", "x") "; s = Softmax a axis=1; " TURN("y", "s"),
         "Shuffle Softmax Shuffle", NULL),
    ROWS(TURN("a", "x") "; m = Max a {3x1x8}; " TURN("y", "m"),
         "Shuffle Constant ElementWise Shuffle", NULL),
    ROWS("a = Transpose x perm=0,2,1; s = Sigmoid a; y = Transpose s perm=0,2,1",
         "Shuffle Activation Shuffle", NULL),
    /* a product whose other operand is not one for all */
    {"x=2x3x8 w=3x8x5", TURN("a", "x") "; p = MatMul a w; " TURN("y", "p"),
     "Shuffle MatrixMultiply Shuffle", NULL, NULL},
    /* the same without any order: dims alone */
    ROWS("f = Reshape x [6,8]; p = MatMul f {8x5}; r = Reshape p [2,3,5]; y = Sigmoid r",
         "MatrixMultiply Activation", NULL),
};

TestSuite(regions, .init = open_registry, .fini = close_registry);

Test(regions, compute_the_same)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_case(&cases[i]);
}

Test(regions, say_what_they_were_made_of)
{
    static const struct {
        struct pattern_case c;
        const char *comment;
    } said[] = {
        {{"x=2x3x8",
          TURN("a", "x") "; f = Reshape a [6,8]; p = MatMul f {8x5}; r = Reshape p "
                         "[3,2,5]; " TURN("t", "r") "; y = Sigmoid t",
          "MatrixMultiply Activation", NULL, NULL},
         "# from: f, a, r, t\n[layer p]\n"},
    };
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        struct model_text *t = model_text_make(said[i].c.shapes, said[i].c.text, NULL);
        struct imported x;
        run(&x, &said[i].c, t, true);
        cr_expect(strstr(x.text, said[i].comment), "%s", x.text);
        imported_free(&x);
        free(t);
    }
}
