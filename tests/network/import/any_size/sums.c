/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoders' masks, which are as long as what a cache holds and what a run adds: a dim
 * that is the sum of two others, or of one and a number. And dims of several names that
 * are one, as TensorFlow's converter writes the batch of each input.
 */
#include "tests/network/import/any_size/any_size.h"

enum { PAST = 5 };

/* Scores of queries x for keys z, x; of a mask m over them. */
#define SCORES                                                                           \
    "input x f @x#x2\ninput m f @x&\ninput z f @x$x2\nnode Concat z,x -> j axis=1\n"     \
    "node Transpose j -> t perm=[0,2,1]\nnode MatMul x,t -> s\n"

/* One row of the mask for each query. */
#define MASKED                                                                           \
    "init one i 1 1\nnode Unsqueeze m,one -> u\nnode Add s,u -> a\n"                     \
    "node Softmax a -> y axis=-1\noutput y\n"

/* A causal mask as exporters compute it, with zeros of both signs: rows are of queries,
 * from the past's end on. */
#define CAUSAL                                                                           \
    "node Shape x -> sx start=1 end=2\nnode Shape m -> sm start=1 end=2\n"               \
    "node Shape z -> sz start=1 end=2\nnode Concat sx,sm -> d axis=0\n"                  \
    "node ConstantOfShape d -> c0\ninit low f - -100\nnode Add c0,low -> c1\n"           \
    "init i1 i - 1\nnode Trilu c1,i1 -> c2 upper=1\ninit i0 i - 0\n"                     \
    "node Squeeze sm -> nm\nnode Range i0,nm,i1 -> keys\nnode Squeeze sz -> p\n"         \
    "node Squeeze sx -> n\nnode Add p,n -> e\nnode Range p,e,i1 -> places\n"             \
    "init col i 2 -1 1\nnode Reshape places,col -> pc\nnode Greater keys,pc -> g\n"      \
    "node Cast g -> gf to=1\nnode Mul c2,gf -> mask\nnode Add s,mask -> sc\n"

/* The same, written as a whole over what it was. */
#define WRITTEN                                                                          \
    "node Size s -> all\nnode Range i0,all,i1 -> flat\nnode Shape s -> ss\n"             \
    "init l0 i 1 0\ninit l1 i 1 1\ninit l2 i 1 2\n"                                      \
    "node Expand mask,ss -> em\nnode Gather ss,l2 -> width\n"                            \
    "node Div flat,width -> row\nnode Mod flat,width -> k\n"                             \
    "node Gather ss,l1 -> height\nnode Div row,height -> b\nnode Mod row,height -> q\n"  \
    "init end i 1 1\nnode Unsqueeze b,end -> b1\nnode Unsqueeze q,end -> q1\n"           \
    "node Unsqueeze k,end -> k1\nnode Concat b1,q1,k1 -> at axis=1\n"                    \
    "init three i 1 3\nnode Concat ss,three -> as axis=0\nnode Reshape at,as -> index\n" \
    "node ScatterND em,index,sc -> w\n"                                                  \
    "init one i 1 1\nnode Unsqueeze m,one -> u\nnode Add w,u -> a\n"                     \
    "node Softmax a -> y axis=-1\noutput y\n"

static const struct {
    const char *name, *text;
    const char *sum; /* what the dim is called */
    bool one;        /* runs are of one token */
    const char *says;
} kept[] = {
    {"a sum by its name", SCORES MASKED, "P+T", false, "shape = batch x P+T\n"},
    {"a sum that the model asks for", SCORES MASKED, "S", false, "shape = batch x T+P\n"},
    {"a past and one token, by name", SCORES MASKED, "P+1", true,
     "shape = batch x P+1\n"},
    {"a past and one token", SCORES MASKED, "S", true, "shape = batch x P+1\n"},
    {"a causal mask",
     SCORES CAUSAL "init one i 1 1\nnode Unsqueeze m,one -> u\nnode Add sc,u -> a\n"
                   "node Softmax a -> y axis=-1\noutput y\n",
     "S", false, "begin = P\n"},
    {"a reshape of all keys",
     "input x f @x#x2\ninput m f 1\ninput z f @x$x2\nnode Concat z,x -> j axis=1\n"
     "node Transpose j -> t perm=[0,2,1]\nnode Exp t -> e\n"
     "node Shape e -> s start=2 end=3\ninit h i 1 -1\nnode Concat h,s -> d axis=0\n"
     "node Reshape e,d -> r\nnode Softmax r -> f axis=1\nnode Mul f,m -> y\noutput y\n",
     "S", false, "T+P\n"},
    {"a mask that is read by tuples",
     SCORES
     "node Shape m -> ms\nnode Size m -> all\ninit i0 i - 0\ninit i1 i - 1\n"
     "node Range i0,all,i1 -> flat\ninit end i 1 1\nnode Gather ms,end -> width\n"
     "node Div flat,width -> b\nnode Mod flat,width -> k\nnode Unsqueeze b,end -> b1\n"
     "node Unsqueeze k,end -> k1\nnode Concat b1,k1 -> at axis=1\n"
     "node Shape z -> zs start=1 end=2\nnode Shape x -> xs start=1 end=2\n"
     "node Add zs,xs -> sum\ninit l i 2 1 -1\ninit two i 1 2\nnode Concat l,sum,two -> "
     "as axis=0\nnode Reshape at,as -> i0a\n"
     "node Transpose i0a -> index perm=[1,0,2,3]\nnode GatherND m,index -> g\n"
     "node Add s,g -> a\nnode Softmax a -> y axis=-1\noutput y\n",
     "S", false, "shape = batch x T+P\n"},
    {"a mask that is written everywhere", SCORES CAUSAL WRITTEN, "S", false,
     "shape = batch x T+P\n"},
};

/* '&' is the sum. */
static struct free_model open_model(size_t i, const char *batch, const char *length,
                                    const char *past, const char *sum)
{
    char text[FREE_MODEL_BYTES];
    size_t n = 0;
    for (const char *from = kept[i].text; *from; from++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s",
                              *from == '&' ? (int)strlen(sum) : 1,
                              *from == '&' ? sum : from);
    return free_model_open(text, batch, length, past);
}

static void expect_at(const struct imported *any, size_t i, int rows, int length,
                      int past)
{
    char b[16], t[16], p[16], s[16], sizes[64];
    struct imported fixed;
    snprintf(b, sizeof b, "%d", rows);
    snprintf(t, sizeof t, "%d", length);
    snprintf(p, sizeof p, "%d", past);
    snprintf(s, sizeof s, "%d", past + length);
    snprintf(sizes, sizeof sizes, "%s x %s behind %s", b, t, p);
    struct free_model at = open_model(i, b, t, p, s);
    open_import(&fixed, &at, NULL, kept[i].name);
    expect_same(any, &fixed, kept[i].name, sizes);
    imported_free(&fixed);
    free_model_close(&at);
}

Test(import_sums, one_network_for_all_sizes, .timeout = 600)
{
    static const struct import_symbol all[] = {
        {.name = "batch", .n = 2, .values = {1, ROWS}},
        {.name = "P", .n = 1, .values = {PAST}, .range = true, .least = 1},
        {.name = "T", .n = 1, .values = {LENGTH}, .range = true, .least = 1},
        {.name = "S", .n = 1, .values = {PAST + LENGTH}, .range = true, .least = 1},
    };
    static const struct import_options o = {.symbols = all, .n_symbols = 4};
    static const int sizes[][3] = {{1, 1, 1}, {3, 9, 5}, {2, 4, 5},
                                   {1, 8, 1}, {3, 1, 3}, {1, 5, 2}};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        struct free_model m =
            open_model(i, "batch", kept[i].one ? "1" : "T", "P", kept[i].sum);
        struct imported any;
        open_import(&any, &m, &o, kept[i].name);
        for (int k = 0; k < any.im->n_symbols; k++)
            cr_expect_str_eq(any.im->symbols[k].reason, "", "%s: %s", kept[i].name,
                             any.im->symbols[k].reason);
        cr_expect_not_null(strstr(any.text, kept[i].says), "%s: no '%s' in:\n%s",
                           kept[i].name, kept[i].says, any.text);
        cr_expect(!strstr(any.text, "Scatter") && !strstr(any.text, "= Gather"),
                  "%s:\n%s", kept[i].name, any.text);
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
            expect_at(&any, i, sizes[k][0], kept[i].one ? 1 : sizes[k][1], sizes[k][2]);
        imported_free(&any);
        free_model_close(&m);
    }
}

/* Without options, sums follow what is assumed; a fixed summand is a number in them. */
Test(import_sums, what_nobody_tells, .timeout = 600)
{
    static const struct import_symbol five[] = {{.name = "T", .n = 1, .values = {5}}};
    static const struct {
        struct import_options options;
        const char *sum, *says;
    } cases[] = {
        {{0}, "S", "[input m]\nshape = batch x T+P\n"},
        {{0}, "P+T", "[input m]\nshape = batch x P+T\n"},
        {{.symbols = five, .n_symbols = 1}, "P+T", "[input m]\nshape = batch x P+5\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct free_model m = open_model(0, "batch", "T", "P", cases[i].sum);
        struct import *im = NULL;
        char *ini = NULL;
        size_t size;
        strata_error err = {0};
        cr_assert_eq(import_make(&im, m.onnx, m.registry, &cases[i].options, &err),
                     STRATA_OK, "%s", err.message);
        cr_assert_eq(import_text(im, "weights", &ini, &size, &err), STRATA_OK, "%s",
                     err.message);
        cr_expect_not_null(strstr(ini, cases[i].says), "no '%s' in:\n%s", cases[i].says,
                           ini);
        free(ini);
        import_free(im);
        free_model_close(&m);
    }
}

/* What is twice another is no sum of that and a third, though it is where both are as
 * long. */
Test(import_sums, what_is_twice_another_is_none)
{
    struct free_model m = free_model_open(
        "input x f @x#\ninput z f @x$\ninput m f @xS\nnode Concat x,x -> j axis=1\n"
        "node Add j,m -> y\nnode Neg z -> w\noutput y\noutput w\n",
        "batch", "T", "P");
    struct import *im = NULL;
    strata_error err = {0};
    cr_expect_eq(import_make(&im, m.onnx, m.registry, NULL, &err), STRATA_EUNSUPPORTED);
    cr_expect_not_null(strstr(err.message, "'S' was taken as"), "%s", err.message);
    import_free(im);
    free_model_close(&m);
}

/* ---- dims that are one ---- */

/* '&' is the batch of the second input, '%' its length, '~' the batch of the third. */
static struct free_model open_twins(const char *text, const char *const names[6])
{
    char copy[FREE_MODEL_BYTES];
    size_t n = 0;
    for (const char *from = text; *from; from++) {
        const char one[2] = {*from, '\0'};
        n += (size_t)snprintf(copy + n, sizeof copy - n, "%s",
                              *from == '&'   ? names[3]
                              : *from == '%' ? names[4]
                              : *from == '~' ? names[5]
                                             : one);
    }
    return free_model_open(copy, names[0], names[1], names[2]);
}

static const struct {
    const char *name, *text, *says;
    bool apart; /* lengths are two */
} twins[] = {
    {"rows of two inputs",
     "input x f @x4\ninput z f &x4\nnode Concat x,z -> y axis=1\noutput y\n",
     "[input z]\nshape = A x 4\n", false},
    {"rows and lengths", "input x f @x#\ninput z f &x%\nnode Add x,z -> y\noutput y\n",
     "[input z]\nshape = A x T\n", false},
    {"rows, but lengths of their own",
     "input x f @x#x2\ninput z f &x%x2\nnode Transpose z -> t perm=[0,2,1]\n"
     "node MatMul x,t -> y\noutput y\n",
     "[input z]\nshape = A x S x 2\n", true},
    {"rows of three inputs",
     "input x f @x#x2\ninput z f &x1x2\ninput m f ~x1x2\nnode Concat x,z,m -> y axis=1\n"
     "output y\n",
     "[input m]\nshape = A x 1 x 2\n", false},
};

Test(import_sums, dims_of_several_names_are_one, .timeout = 600)
{
    static const char *const names[] = {"A", "T", "P", "B", "S", "C"};
    static const char *const sizes[][6] = {{"1", "1", "2", "1", "1", "1"},
                                           {"3", "9", "3", "3", "9", "3"},
                                           {"2", "7", "5", "2", "5", "2"}};
    static const struct import_symbol ranges[] = {
        {.name = "A", .n = 2, .values = {1, ROWS}},
        {.name = "T", .n = 1, .values = {LENGTH}, .range = true, .least = 1},
    };
    static const struct import_options o = {.symbols = ranges, .n_symbols = 2};
    for (size_t i = 0; i < sizeof twins / sizeof twins[0]; i++) {
        struct free_model m = open_twins(twins[i].text, names);
        struct imported any;
        open_import(&any, &m, &o, twins[i].name);
        cr_expect_not_null(strstr(any.text, twins[i].says), "%s: no '%s' in:\n%s",
                           twins[i].name, twins[i].says, any.text);
        for (size_t k = 0; k < (twins[i].apart ? 3 : 2); k++) {
            struct free_model at = open_twins(twins[i].text, sizes[k]);
            struct imported fixed;
            open_import(&fixed, &at, NULL, twins[i].name);
            expect_same(&any, &fixed, twins[i].name, sizes[k][1]);
            imported_free(&fixed);
            free_model_close(&at);
        }
        imported_free(&any);
        free_model_close(&m);
    }
}
