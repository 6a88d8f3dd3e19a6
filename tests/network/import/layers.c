/* SPDX-License-Identifier: Apache-2.0
 *
 * What layers an operator becomes, and which operators are refused, where ONNX's own
 * cases do not say it.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "network/import/import.h"
#include "tests/io/onnx_text.h"

#define D(n) "1:{1:" #n "} "
#define IN(name, dims) "11:{1:'" name "' 2:{1:{1:1 2:{" dims "}}}} "
#define BYTES(name, dims) "11:{1:'" name "' 2:{1:{1:2 2:{" dims "}}}} "
#define OUT(name) "12:{1:'" name "'} "
#define REALS(name, dims, values) "5:{8:'" name "' 2:1 " dims " " values "} "
#define WHOLE(name, dims, values) "5:{8:'" name "' 2:7 " dims " " values "} "
#define DO(op, ports) "1:{4:'" op "' " ports "} "
#define INTEGER(name, v) "5:{1:'" name "' 20:2 3:" #v "} "
#define INTEGERS(name, v) "5:{1:'" name "' 20:7 " v "} "
#define REAL(name, v) "5:{1:'" name "' 20:1 2:f" #v "} "
#define WORD(name, v) "5:{1:'" name "' 20:3 4:'" v "'} "

/* One operator of x, a and b. */
struct form {
    const char *name, *graph;
    const char *layers; /* of the INI text */
    const char *refusal;
};

static const struct form forms[] = {
    {"fused convolution",
     MODEL(IN("x", D(1) D(2) D(4) D(4)) IN("z", D(1) D(1) D(4) D(4)) OUT("y")
               REALS("w", "1:1 1:2 1:1 1:1", "4:f1 4:f2")
                   DO("FusedConv",
                      "7:'com.microsoft' 1:'x' 1:'w' 1:'' 1:'z' 2:'y' " WORD(
                          "activation",
                          "LeakyRelu") "5:{1:'activation_params' 20:6 7:f0.25} ")),
     "\n"
     "[layer Convolution]\n"
     "type = Convolution\n"
     "inputs = x\n"
     "weights = w:Convolution\n"
     "\n"
     "[layer ElementWise]\n"
     "type = ElementWise\n"
     "inputs = Convolution, z\n"
     "\n"
     "[layer y]\n"
     "type = Activation\n"
     "kind = leaky_relu\n"
     "alpha = 0.25\n",
     NULL},
    {"constant matrix and bias",
     MODEL(IN("x", D(3) D(2)) OUT("y") REALS("b", "1:1 1:2", "4:f1 4:f2") REALS(
         "c", "1:1", "4:f4") DO("Gemm", "1:'x' 1:'b' 1:'c' 2:'y' " REAL("beta", 0.5)
                                            INTEGER("transB", 1))),
     "\n"
     "[layer y]\n"
     "type = MatrixMultiply\n"
     "transpose_b = yes\n"
     "weights = w:y\n",
     NULL},
    {"vector times matrices",
     MODEL(IN("x", D(2)) IN("b", D(5) D(2) D(3)) OUT("y")
               DO("MatMul", "1:'x' 1:'b' 2:'y' ")),
     "\n"
     "[layer Shuffle]\n"
     "type = Shuffle\n"
     "inputs = x\n"
     "shape = 1, 2\n"
     "\n"
     "[layer MatrixMultiply]\n"
     "type = MatrixMultiply\n"
     "inputs = Shuffle, b\n"
     "\n"
     "[layer y]\n"
     "type = Shuffle\n"
     "shape = 5, 3\n",
     NULL},
    {"three operands",
     MODEL(IN("x", D(2) D(3)) IN("a", D(3) D(4)) IN("b", D(4) D(5)) OUT("y")
               DO("Einsum", "1:'x' 1:'a' 1:'b' 2:'y' " WORD("equation", "ij,jk,kl->il"))),
     "\n"
     "[layer MatrixMultiply]\n"
     "type = MatrixMultiply\n"
     "inputs = x, a\n"
     "\n"
     "[layer y]\n"
     "type = MatrixMultiply\n"
     "inputs = MatrixMultiply, b\n",
     NULL},
    {"trace",
     MODEL(IN("x", D(3) D(3)) OUT("y")
               DO("Einsum", "1:'x' 2:'y' " WORD("equation", "ii->"))),
     "\n"
     "[layer Shuffle]\n"
     "type = Shuffle\n"
     "shape = 9\n"
     "\n"
     "[layer Slice]\n"
     "type = Slice\n"
     "axes = 0\n"
     "begin = 0\n"
     "end = 9\n"
     "step = 4\n"
     "\n"
     "[layer y]\n"
     "type = Reduce\n"
     "axes = 0\n"
     "keep_dims = no\n",
     NULL},
    {"resize of an image",
     MODEL(IN("x", D(1) D(2) D(4) D(4)) OUT("y") REALS("s", "1:4", "4:f1 4:f1 4:f2 4:f3")
               DO("Resize", "1:'x' 1:'' 1:'s' 2:'y' " WORD("mode", "linear"))),
     "\n"
     "[layer y]\n"
     "type = Resize\n"
     "mode = linear\n"
     "scale = 2, 3\n"
     "axes = 2, 3\n",
     NULL},
    {"resize by 1",
     MODEL(IN("x", D(1) D(2) D(4) D(4)) OUT("y") WHOLE("s", "1:4", "7:1 7:2 7:4 7:4")
               DO("Resize", "1:'x' 1:'' 1:'' 1:'s' 2:'y' ")),
     "\n"
     "[layer y]\n"
     "type = Identity\n",
     NULL},
    {"computed filters",
     MODEL(BYTES("x", D(1) D(2) D(4) D(4)) BYTES("w", D(1) D(2) D(1) D(1)) OUT("y")
               DO("ConvInteger", "1:'x' 1:'w' 2:'y' ")),
     NULL, "input 'w' must be constant"},
    {"padding by a word that is none",
     MODEL(IN("x", D(1) D(2) D(4) D(4)) OUT("y")
               DO("MaxPool", "1:'x' 2:'y' " INTEGERS("kernel_shape", "8:2 8:2")
                                 WORD("auto_pad", "SAME"))),
     NULL, "'auto_pad' = 'SAME' is none of"},
    {"sums that FP32 does not hold",
     MODEL(BYTES("x", D(1) D(600) D(1) D(1))
               OUT("y") "5:{8:'w' 2:2 1:1 1:600 1:1 1:1 9:="
                        "%s} " DO("ConvInteger", "1:'x' 1:'w' 2:'y' ")),
     NULL, "sums of filter 0 may exceed 2^24"},
    {"such sums as floats",
     MODEL(BYTES("x", D(1) D(600) D(1) D(1))
               OUT("y") "5:{8:'w' 2:2 1:1 1:600 1:1 1:1 9:="
                        "%s} " DO("ConvInteger", "1:'x' 1:'w' 2:'s' ")
                            DO("Cast", "1:'s' 2:'y' " INTEGER("to", 1))),
     "\n[layer Cast]\ntype = Cast\nto = fp32\n\n[layer Convolution]\n"
     "type = Convolution\nweights = w:Convolution\n\n[layer s]\ntype = Cast\n"
     "to = i32\n\n[layer y]\ntype = Cast\nto = fp32\n",
     NULL},
    {"places of another mode",
     MODEL(IN("x", D(1) D(2) D(4) D(4)) OUT("y") REALS("s", "1:4", "4:f1 4:f1 4:f2 4:f2")
               DO("Resize",
                  "1:'x' 1:'' 1:'s' 2:'y' " WORD("mode", "linear")
                      WORD("coordinate_transformation_mode", "tf_half_pixel_for_nn"))),
     NULL, "is taken with nearest_mode floor and"},
    {"channels that blocks do not divide",
     MODEL(IN("x", D(1) D(6) D(4) D(4)) OUT("y")
               DO("DepthToSpace", "1:'x' 2:'y' " INTEGER("blocksize", 2))),
     NULL, "shape holds 64 elements, the input 96"},
    {"a block of no size",
     MODEL(IN("x", D(1) D(6) D(4) D(4)) OUT("y")
               DO("SpaceToDepth", "1:'x' 2:'y' " INTEGER("blocksize", 0))),
     NULL, "blocks of 0 do not divide an input"},
    {"an equation of other operands",
     MODEL(IN("x", D(2) D(3)) OUT("y")
               DO("Einsum", "1:'x' 2:'y' " WORD("equation", "ij,jk->ik"))),
     NULL, "'equation' is not of 1 operands"},
    {"an equation of another rank",
     MODEL(IN("x", D(2) D(3)) OUT("y")
               DO("Einsum", "1:'x' 2:'y' " WORD("equation", "ijk->ik"))),
     NULL, "'equation' does not fit an operand of rank 2"},
    {"an equation of digits",
     MODEL(IN("x", D(2) D(3)) OUT("y")
               DO("Einsum", "1:'x' 2:'y' " WORD("equation", "1j->j"))),
     NULL, "'equation' holds what is no letter"},
    {"unequal dims of a label",
     MODEL(IN("x", D(2) D(3)) IN("a", D(4) D(5)) OUT("y")
               DO("Einsum", "1:'x' 1:'a' 2:'y' " WORD("equation", "ij,jk->ik"))),
     NULL, "dims of label 'j' are 3 and 4"},
    {"a grid past all memory",
     MODEL(IN("x", D(1) D(2) D(3)) OUT("y")
               WHOLE("s", "1:4", "7:1 7:1 7:2000000000 7:2000000000")
                   DO("AffineGrid", "1:'x' 1:'s' 2:'y' ")),
     NULL, "it would need a constant of more than"},
    {"blocks a step of 0 apart",
     MODEL(IN("x", D(1) D(4) D(4)) OUT("y") WHOLE("i", "1:2", "7:3 7:3") WHOLE("k", "1:2",
                                                                               "7:2 7:2")
               DO("Col2Im", "1:'x' 1:'i' 1:'k' 2:'y' " INTEGERS("strides", "8:0 8:1"))),
     NULL, "'strides' holds 0"},
    {"a sum of ten",
     MODEL(IN("x", D(2)) OUT("y") DO("Sum", "1:'x' 1:'x' 1:'x' 1:'x' 1:'x' 1:'x' 1:'x' "
                                            "1:'x' 1:'x' 1:'x' 2:'y' ")),
     "\n"
     "[layer ElementWise]\n"
     "type = ElementWise\n"
     "inputs = x, x, x, x, x, x, x, x\n"
     "\n"
     "[layer y]\n"
     "type = ElementWise\n"
     "inputs = ElementWise, x, x\n",
     NULL},
    {"parts of which the last is shorter",
     MODEL(IN("x", D(7)) OUT("b") DO("Split", "1:'x' 2:'a' 2:'b' 2:'c' ")
               DO("Concat", "1:'c' 1:'a' 2:'y' " INTEGER("axis", 0)) OUT("y")),
     "\n"
     "[layer a]\n"
     "type = Slice\n"
     "split = 3, 3, 1\n"
     "axis = 0\n"
     "\n"
     "[layer y]\n"
     "type = Concatenation\n"
     "inputs = a:2, a\n"
     "axis = 0\n",
     NULL},
    {"a constant scalar index",
     MODEL(IN("x", D(2) D(3)) OUT("y") "5:{8:'i' 2:7 7:-1} " DO(
         "Gather", "1:'x' 1:'i' 2:'y' " INTEGER("axis", 1))),
     "\n"
     "[layer Slice]\n"
     "type = Slice\n"
     "axes = 1\n"
     "begin = 2\n"
     "end = 3\n"
     "\n"
     "[layer y]\n"
     "type = Shuffle\n"
     "shape = 2\n",
     NULL},
    {"what does nothing",
     MODEL(IN("x", D(2) D(3)) OUT("y") WHOLE("s", "1:2", "7:2 7:3") DO("Relu",
                                                                       "1:'x' 2:'a' ")
               DO("Dropout", "1:'a' 2:'b' ") DO("Reshape", "1:'b' 1:'s' 2:'c' ")
                   DO("CastLike", "1:'c' 1:'x' 2:'d' ") DO("Identity", "1:'d' 2:'y' ")),
     "\n"
     "[layer y]\n"
     "type = Activation\n",
     NULL},
    {"an output that is an input",
     MODEL(IN("x", D(2) D(3)) OUT("y") DO("Identity", "1:'x' 2:'y' ")),
     "\n"
     "[layer y]\n"
     "type = Identity\n",
     NULL},
    {"ends beyond the dim",
     MODEL(IN("x", D(4) D(5)) OUT("y") WHOLE("b", "1:2", "7:-9 7:-1")
               WHOLE("e", "1:2", "7:99 7:-99") WHOLE("a", "1:2", "7:0 7:1")
                   WHOLE("t", "1:2", "7:1 7:-2")
                       DO("Slice", "1:'x' 1:'b' 1:'e' 1:'a' 1:'t' 2:'y' ")),
     "\n"
     "[layer y]\n"
     "type = Slice\n"
     "axes = 1\n"
     "begin = 4\n"
     "end = -6\n"
     "step = -2\n",
     NULL},
    {"a cap of integers",
     MODEL("11:{1:'x' 2:{1:{1:6 2:{" D(3) "}}}} " OUT("y") "5:{8:'h' 2:6 5:7} " DO(
         "Clip", "1:'x' 1:'' 1:'h' 2:'y' ")),
     "\n"
     "[layer h]\n"
     "type = Constant\n"
     "weights = w:h\n"
     "\n"
     "[layer y]\n"
     "type = ElementWise\n"
     "inputs = x, h\n"
     "op = min\n",
     NULL},
    {"half precision that one operand was cast to",
     MODEL(IN("x", D(3)) "11:{1:'a' 2:{1:{1:10 2:{" D(3) "}}}} " OUT("y") DO(
         "Cast", "1:'x' 2:'b' " INTEGER("to", 10)) DO("Add", "1:'b' 1:'a' 2:'y' ")),
     "\n"
     "[layer b]\n"
     "type = Cast\n"
     "inputs = x\n"
     "to = fp16\n"
     "\n"
     "[layer Cast]\n"
     "type = Cast\n"
     "inputs = a\n"
     "to = fp16\n"
     "\n"
     "[layer y]\n"
     "type = ElementWise\n"
     "inputs = b, Cast\n",
     NULL},
    {"a shape of another size",
     MODEL(IN("x", D(2) D(3)) OUT("y") WHOLE("s", "1:2", "7:4 7:-1")
               DO("Reshape", "1:'x' 1:'s' 2:'y' ")),
     NULL, "'shape' does not hold the input's 6 elements"},
    {"a dim that is not 1",
     MODEL(IN("x", D(2) D(3)) OUT("y") WHOLE("s", "1:1", "7:0")
               DO("Squeeze", "1:'x' 1:'s' 2:'y' ")),
     NULL, "dim 0 is 2; only a dim of 1 can be left out"},
    {"parts that are too many",
     MODEL(IN("x", D(4)) OUT("b") WHOLE("s", "1:2", "7:3 7:2")
               DO("Split", "1:'x' 1:'s' 2:'a' 2:'b' ")),
     NULL, "'split' holds 2 where 1 of the dim are left"},
    {"an index outside",
     MODEL(IN("x", D(2) D(3)) OUT("y") "5:{8:'i' 2:7 7:3} " DO(
         "Gather", "1:'x' 1:'i' 2:'y' " INTEGER("axis", 1))),
     NULL, "index 3 is outside of dim 1 of 3 elements"},
    {"a size that depends on values",
     MODEL(IN("x", D(3)) OUT("y") DO("Unique", "1:'x' 2:'y' ")), NULL,
     "its output's size depends on values"},
    {"a range past all memory",
     MODEL(IN("x", D(3))
               OUT("y") "5:{8:'a' 2:7 7:0} 5:{8:'b' 2:7 7:2000000000} "
                        "5:{8:'c' 2:7 7:1} " DO("Range", "1:'a' 1:'b' 1:'c' 2:'y' ")),
     NULL, "it would need a constant of more than"},
    {"a dim past all tensors",
     MODEL(IN("x", D(1) D(3)) OUT("y")
               WHOLE("s", "1:4", "7:2000000000 7:2000000000 7:1 7:1")
                   DO("Expand", "1:'x' 1:'s' 2:'y' ")),
     NULL, "more elements than a tensor may have"},
    {"recurrent cells, the batch first",
     MODEL(IN("x", D(2) D(3) D(1)) IN("h", D(2) D(1) D(1)) OUT("y") OUT("n") REALS(
         "w", "1:1 1:3 1:1", "4:f1 4:f2 4:f3") REALS("r", "1:1 1:3 1:1", "4:f1 4:f2 4:f3")
               DO("GRU",
                  "1:'x' 1:'w' 1:'r' 1:'' 1:'' 1:'h' 2:'y' 2:'n' " INTEGER("layout", 1)
                      WORD("direction", "reverse")
                          REAL("clip",
                               0.5) "5:{1:'activations' 20:8 9:'HardSigmoid' 9:'Tanh'} "
                                    "5:{1:'activation_alpha' 20:6 7:f0.25} ")),
     "\n"
     "[layer Shuffle]\n"
     "type = Shuffle\n"
     "inputs = h\n"
     "first = 1, 0, 2\n"
     "\n"
     "[layer y/RNN]\n"
     "type = RNN\n"
     "inputs = x, none, Shuffle\n"
     "op = gru\n"
     "direction = reverse\n"
     "reset_after = no\n"
     "layout = batch\n"
     "clip = 0.5\n"
     "activations = \"hard_sigmoid tanh\"\n"
     "activation_alpha = 0.25, inf\n"
     "split_directions = yes\n"
     "weights = w:y/RNN\n"
     "\n"
     "[layer n]\n"
     "type = Shuffle\n"
     "inputs = y/RNN:1\n"
     "first = 1, 0, 2\n",
     NULL},
    {"an activation that is none of a cell",
     MODEL(IN("x", D(2) D(3) D(1)) OUT("y") REALS("w", "1:1 1:1 1:1", "4:f1") REALS(
         "r", "1:1 1:1 1:1", "4:f1") DO("RNN", "1:'x' 1:'w' 1:'r' 2:'y' "
                                               "5:{1:'activations' 20:8 9:'Affine'} ")),
     NULL, "the activation 'Affine' is not taken"},
};

/* Import; *status is what import_make said. NULL after a refusal. */
static struct import *import_of(const struct onnx_model *m, int *status,
                                strata_error *err)
{
    static strata_registry *registry;
    struct import *im = NULL;
    if (!registry)
        cr_assert_eq(strata_registry_create(&registry, NULL, err), STRATA_OK, "%s",
                     err->message);
    const struct import_options options = {.no_patterns = true};
    *status = import_make(&im, m, registry, &options, err);
    return im;
}

static void expect_layers(const struct form *f, const struct import *im)
{
    strata_error err = {0};
    char *text = NULL;
    size_t size;
    cr_assert_eq(import_text(im, "w.safetensors", &text, &size, &err), STRATA_OK, "%s",
                 err.message);
    const char *layers = strstr(text, "\n[layer ");
    cr_expect(layers && strcmp(layers, f->layers) == 0, "%s:%s", f->name,
              layers ? layers : text);
    free(text);
}

Test(layers, each_form)
{
    char filters[1201];
    memset(filters, 'f', 1200);
    filters[1200] = '\0';
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const struct form *f = &forms[i];
        strata_error err = {0};
        struct blob b;
        char graph[4096];
        int status;
        cr_assert_lt(snprintf(graph, sizeof graph, f->graph, filters), (int)sizeof graph);
        const struct onnx_model *m = read_text(&b, graph);
        struct import *im = import_of(m, &status, &err);
        if (f->layers && status == STRATA_OK)
            expect_layers(f, im);
        else
            cr_expect(f->refusal && status == STRATA_EUNSUPPORTED &&
                          strstr(err.message, f->refusal),
                      "%s: %s", f->name, err.message);
        import_free(im);
        onnx_close(m);
        free(b.bytes);
    }
}

/* 2·(x − 3)/√(3 + 1) + 5 is 1·x + 2. */
Test(layers, batch_normalization_is_a_factor_and_an_addend)
{
    strata_error err = {0};
    struct blob b;
    void *bytes = NULL;
    size_t size = 0;
    int status;
    const struct onnx_model *m = read_text(
        &b, MODEL(IN("x", D(1) D(1) D(2) D(2)) OUT("y") REALS("s", "1:1", "4:f2") REALS(
                "b", "1:1", "4:f5") REALS("m", "1:1", "4:f3") REALS("v", "1:1", "4:f3")
                      DO("BatchNormalization",
                         "1:'x' 1:'s' 1:'b' 1:'m' 1:'v' 2:'y' " REAL("epsilon", 1))));
    struct import *im = import_of(m, &status, &err);
    cr_assert_eq(status, STRATA_OK, "%s", err.message);
    cr_assert_eq(import_weights(im, &bytes, &size, &err), STRATA_OK, "%s", err.message);
    float v[2];
    cr_assert_geq(size, sizeof v);
    memcpy(v, (const char *)bytes + size - sizeof v, sizeof v);
    cr_expect(v[0] == 1 && v[1] == 2, "%g, %g", (double)v[0], (double)v[1]);
    free(bytes);
    import_free(im);
    onnx_close(m);
    free(b.bytes);
}
