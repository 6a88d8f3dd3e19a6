/* SPDX-License-Identifier: Apache-2.0
 *
 * Models that leave dims free: one network for all sizes, against the model imported at
 * each; or why a dim does not stay, and what becomes of the others.
 */
#include "tests/network/import/any_size/any_size.h"

/* ---- one network for all sizes -------------------------------------------------------
 */

#define HALF "kernel_shape=[1,1] strides=[2,1]\n"

/* says: in the network's text. */
static const struct {
    const char *name, *text, *says;
} kept[] = {
    {"element by element", "input x f @x#x4\nnode Exp x -> y\noutput y\n",
     "shape = batch x T x 4\n\n[profile]\nbatch = 1, 3\nT = 4, 9\n"},
    {"dims of an input elsewhere",
     "input x f #x@x4\ninput z f 1x#x1x@\nnode Exp x -> e\ninit a i 1 0\n"
     "node Unsqueeze e,a -> u\nnode ReduceSum z -> s keepdims=0\nnode Mul u,s -> y\n"
     "output y\n",
     "[input z]\nshape = 1 x T x 1 x batch\n"},
    {"rows that are copied",
     "input x f @x#x4\nnode Shape x -> s end=2\ninit k i 2 2 2\n"
     "node Concat s,k -> t axis=0\nnode Reshape x,t -> r\nnode Softmax r -> y axis=3\n"
     "output y\n",
     "shape = 0, 0, 2, 2\n"},
    {"rows that are joined and parted again",
     "input x f @x#x4\ninit k i 2 -1 4\nnode Reshape x,k -> r\ninit p f 4x4 1 2 3 4 5 6 "
     "7 "
     "8 7 6 5 4 3 2 1 0\nnode MatMul r,p -> q\nnode Exp q -> e\nnode Shape x -> s end=2\n"
     "init j i 2 2 2\nnode Concat s,j -> t axis=0\nnode Reshape e,t -> y\noutput y\n",
     "shape = batch, -1, 2, 2\n"},
    {"several that no copy says",
     "input x f #x@x4\nnode Transpose x -> v perm=[1,0,2]\nnode Exp v -> e\n"
     "init k i 2 -1 4\nnode Reshape e,k -> r\nnode Softmax r -> g axis=0\n"
     "node Shape x -> s end=2\ninit h i 1 1\nnode Concat h,s,h -> t axis=0\n"
     "init l i 4 1 0 0 4\nnode Max t,l -> u\nnode Reshape g,u -> y\noutput y\n",
     "shape = 1, T, -1, 4\n"},
    {"places: rows of a table",
     "input x f @x#x2\ninit w f 9x2 1 2 3 4 5 6 7 8 9 0 1 3 5 7 9 2 4 6\n"
     "node Shape x -> s start=1 end=2\nnode Squeeze s -> n\ninit z i - 0\ninit o i - 1\n"
     "node Range z,n,o -> r\nnode Gather w,r -> g\nnode Add x,g -> y\noutput y\n",
     "type = Slice\naxes = 0\nbegin = 0\nend = T\n"},
    {"places: rows of a table added to those that are looked up",
     "input x f @x#\ninit k f - 5\nnode Mul x,k -> m\nnode Cast m -> i to=7\n"
     "init w f 9x2 1 2 3 4 5 6 7 8 9 0 1 3 5 7 9 2 4 6\nnode Gather w,i -> h\n"
     "node Shape x -> s start=1 end=2\nnode Squeeze s -> n\ninit z i - 0\ninit o i - 1\n"
     "node Range z,n,o -> r\nnode Gather w,r -> g\nnode Add h,g -> y\noutput y\n",
     "type = Slice\naxes = 0\nbegin = 0\nend = T\n"},
    {"a mask of both sides",
     "input x f @x#x4\nnode Transpose x -> t perm=[0,2,1]\nnode MatMul x,t -> p\n"
     "node Shape x -> s start=1 end=2\nnode Concat s,s -> d axis=0\n"
     "node ConstantOfShape d -> c\ninit o f - 1\nnode Add c,o -> f\ninit k i - 0\n"
     "node Trilu f,k -> m upper=0\nnode Add p,m -> y\noutput y\n",
     "type = Slice\naxes = 0, 1\nbegin = 0, 0\nend = T, T\n"},
    {"a mask as long as what is joined",
     "input x f @x#x4\ninput z f @x2x4\nnode Concat z,x -> j axis=1\n"
     "node Transpose j -> t perm=[0,2,1]\nnode MatMul x,t -> p\n"
     "node Shape x -> s start=1 end=2\nnode Shape j -> l start=1 end=2\n"
     "node Concat s,l -> d axis=0\nnode ConstantOfShape d -> c\ninit two f - 2\n"
     "node Add c,two -> f\ninit k i - 1\nnode Trilu f,k -> m\nnode Mul p,m -> y\n"
     "output y\n",
     "axes = 1\nlike = 1\n"},
    {"a token for each row",
     "input x f @x#x3\ninit c f 1x1x3 5 6 7\nnode Shape x -> s end=1\ninit k i 2 1 3\n"
     "node Concat s,k -> t axis=0\nnode Expand c,t -> e\nnode Concat e,x -> y axis=1\n"
     "output y\n",
     "type = Expand\nshape = batch, 1, 3\n"},
    {"a table that each row repeats",
     "input x f @x#x2\nnode Shape x -> s end=2\nnode Shape x -> l start=1 end=2\n"
     "node Squeeze l -> n\ninit z i - 0\ninit o i - 1\nnode Range z,n,o -> r\n"
     "node Cast r -> c to=1\nnode Expand c,s -> e\ninit a i 1 2\n"
     "node Unsqueeze e,a -> u\nnode Concat x,u -> y axis=2\noutput y\n",
     "type = Expand\nshape = batch, 1, 1\n"},
    {"a constant that is stretched anyway",
     "input x f @x#x3\ninit c f 1x1x3 1 2 3\nnode Shape x -> t\nnode Expand c,t -> e\n"
     "node Max e,x -> y\noutput y\n",
     "[layer e]\ntype = Constant\nweights = w:e\n\n[layer y]\ntype = ElementWise\n"},
    {"an expand of what is computed",
     "input x f @x1x3\ninput z f @x#x3\nnode Shape z -> t\nnode Exp x -> e\n"
     "node Expand e,t -> u\nnode Concat u,z -> y axis=2\noutput y\n",
     "type = Expand\nshape = 1, T, 3\n"},
    {"a tile",
     "input x f @x1\ninput z f 1x#\nnode Shape z -> t\nnode Tile x,t -> u\n"
     "node Add u,z -> y\noutput y\n",
     "repeats = 1, T\n"},
    {"all but the last",
     "input x f @x#x3\nnode Shape x -> s start=1 end=2\ninit o i 1 1\nnode Sub s,o -> e\n"
     "init b i 1 0\ninit a i 1 1\nnode Slice x,b,e,a -> l\nnode Concat l,x -> y axis=1\n"
     "output y\n",
     "begin = 0\nend = -1\n"},
    {"the last, and from it to the first",
     "input x f @x#x3\nnode Shape x -> s start=1 end=2\ninit o i 1 1\nnode Sub s,o -> b\n"
     "init a i 1 1\ninit m i 1 -1\ninit f i 1 -1000\nnode Slice x,b,s,a -> l\n"
     "node Slice x,b,f,a,m -> r\nnode Add l,r -> y\noutput y\n",
     "begin = -1\n"},
    {"as many as another has",
     "input x f @x#x3\ninput z f @x9x3\nnode Shape x -> s start=1 end=2\ninit b i 1 0\n"
     "init a i 1 1\nnode Slice z,b,s,a -> l\nnode Add l,x -> y\noutput y\n",
     "begin = 0\nend = T\n"},
    {"first states of a cell, zeros and others",
     "input x f @x#x2\nnode Transpose x -> t perm=[1,0,2]\nnode Shape x -> s end=1\n"
     "init o i 1 1\nnode Concat o,s,o -> d axis=0\nnode ConstantOfShape d -> h\n"
     "init one f - 1\nnode Add h,one -> c\ninit w f 1x4x2 1 2 3 4 4 3 2 1\n"
     "init r f 1x4x1 4 3 2 1\nnode LSTM t,w,r,_,_,h,c -> l hidden_size=1\n"
     "node Transpose l -> y perm=[2,0,1,3]\noutput y\n",
     "none, none, c/Expand\n"},
    {"as many as half of it",
     "input x f @x2x#x3\nnode MaxPool x -> p " HALF "node Shape p -> s start=2 end=3\n"
     "init b i 1 0\ninit a i 1 2\nnode Slice x,b,s,a -> l\nnode Add p,l -> y\noutput y\n",
     "axes = 2\nbegin = 0\nlike = 2\n"},
    {"a constant as long as both together",
     "input x f @x#x3\ninit c f 1x3 1 2 3\nnode Shape x -> s end=2\n"
     "node ReduceProd s -> n\ninit k i 1 3\nnode Concat n,k -> t axis=0\n"
     "node Expand c,t -> e\ninit j i 2 -1 3\nnode Reshape x,j -> r\n"
     "node Concat e,r -> y axis=1\noutput y\n",
     "axes = 0\nlike = 0\n"},
    {"an image up to half of its size",
     "input x f @x2x#x3\nnode MaxPool x -> p " HALF "node MaxPool p -> q " HALF
     "node Shape p -> s\nnode Resize q,_,_,s -> r mode='linear'\nnode Add p,r -> y\n"
     "output y\n",
     "mode = linear\naxes = 2\nlike = 2\n"},
    {"an image up to its size",
     "input x f @x2x#x7\nnode MaxPool x -> p kernel_shape=[1,2] strides=[1,2]\n"
     "node Shape x -> s start=2\nnode Shape p -> t end=2\nnode Concat t,s -> u axis=0\n"
     "node Resize p,_,_,u -> y mode='nearest' "
     "coordinate_transformation_mode='asymmetric' nearest_mode='floor'\noutput y\n",
     NULL},
    {"an image of another size",
     "input x f @x2x11x7\ninput z f 1x#\nnode Shape z -> n start=1\nnode Shape x -> t "
     "end=2\n"
     "node Concat t,n,n -> u axis=0\nnode Resize x,_,_,u -> r mode='linear'\n"
     "node Mul r,z -> y\noutput y\n",
     "size = T, T\n"},
};

static const struct import_symbol both[] = {
    {.name = "batch", .n = 2, .values = {1, ROWS}},
    {.name = "T", .n = 2, .values = {4, LENGTH}, .range = true, .least = 1},
};
static const struct import_options ranges = {.symbols = both, .n_symbols = 2};

Test(sizes, one_network_for_all)
{
    static const char *const sizes[][2] = {{"1", "1"}, {"3", "9"}, {"1", "4"},
                                           {"2", "8"}, {"3", "1"}, {"2", "5"}};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        const char *name = kept[i].name;
        struct free_model m = free_model_open(kept[i].text, "batch", "T", "");
        struct imported any;
        open_import(&any, &m, &ranges, name);
        for (int k = 0; k < any.im->n_symbols; k++)
            cr_expect_str_eq(any.im->symbols[k].reason, "", "%s: %s", name,
                             any.im->symbols[k].reason);
        if (kept[i].says)
            cr_expect_not_null(strstr(any.text, kept[i].says), "%s: no '%s' in:\n%s",
                               name, kept[i].says, any.text);
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            char text[32];
            snprintf(text, sizeof text, "%s x %s", sizes[k][0], sizes[k][1]);
            struct free_model at =
                free_model_open(kept[i].text, sizes[k][0], sizes[k][1], "");
            struct imported fixed;
            open_import(&fixed, &at, NULL, name);
            expect_same(&any, &fixed, name, text);
            imported_free(&fixed);
            free_model_close(&at);
        }
        imported_free(&any);
        free_model_close(&m);
    }
}

/* ---- behind a past -------------------------------------------------------------------
 */

#define PAST                                                                             \
    "input x f @x#x2\ninput z f @x$x2\nnode Shape x -> s start=1 end=2\n"                \
    "node Squeeze s -> n\nnode Shape z -> q start=1 end=2\nnode Squeeze q -> p\n"        \
    "node Concat z,x -> j axis=1\n"

static const struct {
    const char *name, *text, *says;
} behind[] = {
    {"angles of places",
     PAST "init a i - 0\ninit b i - 1\nnode Range a,n,b -> r\nnode Add r,p -> t\n"
          "node Cast t -> f to=1\ninit k i 1 1\nnode Unsqueeze f,k -> u\n"
          "init w f 1x2 1 2\nnode Mul u,w -> v\nnode Cos v -> c\nnode Add x,c -> e\n"
          "node Concat j,e -> y axis=1\noutput y\n",
     "inputs = c, x\naxes = 0\nbegin = P\nlike = 1\n"},
    {"a mask",
     PAST "node Shape j -> l start=1 end=2\nnode Concat s,l -> d axis=0\n"
          "node ConstantOfShape d -> g\ninit one f - 1\nnode Add g,one -> h\n"
          "node Trilu h,p -> m upper=0\nnode Transpose j -> o perm=[0,2,1]\n"
          "node MatMul x,o -> v\nnode Mul v,m -> y\noutput y\n",
     "begin = P\nlike = 1\n"},
};

Test(sizes, constants_that_begin_behind_a_past)
{
    static const struct import_symbol all[] = {
        {.name = "batch", .n = 2, .values = {1, ROWS}},
        {.name = "T", .n = 1, .values = {LENGTH}, .range = true, .least = 1},
        {.name = "P", .n = 1, .values = {5}, .range = true, .least = 1},
    };
    static const struct import_options o = {.symbols = all, .n_symbols = 3};
    static const char *const sizes[][3] = {{"1", "1", "1"}, {"3", "9", "5"},
                                           {"2", "4", "5"}, {"1", "8", "1"},
                                           {"3", "1", "3"}, {"1", "5", "2"}};
    for (size_t i = 0; i < sizeof behind / sizeof behind[0]; i++) {
        const char *name = behind[i].name;
        struct free_model m = free_model_open(behind[i].text, "batch", "T", "P");
        struct imported any;
        open_import(&any, &m, &o, name);
        for (int k = 0; k < any.im->n_symbols; k++)
            cr_expect_str_eq(any.im->symbols[k].reason, "", "%s: %s", name,
                             any.im->symbols[k].reason);
        cr_expect_not_null(strstr(any.text, behind[i].says), "%s: no '%s' in:\n%s", name,
                           behind[i].says, any.text);
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            char text[32];
            const char *const *at = sizes[k];
            snprintf(text, sizeof text, "%s x %s x %s", at[0], at[1], at[2]);
            struct free_model fixed_model =
                free_model_open(behind[i].text, at[0], at[1], at[2]);
            struct imported fixed;
            open_import(&fixed, &fixed_model, NULL, name);
            expect_same(&any, &fixed, name, text);
            imported_free(&fixed);
            free_model_close(&fixed_model);
        }
        imported_free(&any);
        free_model_close(&m);
    }
}

/* ---- what does not stay, and what nobody tells ---------------------------------------
 */

static const struct import_symbol five[] = {{.name = "T", .n = 1, .values = {5}}};
static const struct import_options length_five = {.symbols = five, .n_symbols = 1};
static const struct import_symbol four_and_nine[] = {
    {.name = "T", .n = 2, .values = {4, 9}}};
static const struct import_options listed_lengths = {.symbols = four_and_nine,
                                                     .n_symbols = 1};
static const struct import_symbol thirty[] = {{.name = "T", .n = 2, .values = {30, 32}}};
static const struct import_options between = {.symbols = thirty, .n_symbols = 1};
static const struct import_state kept_state[] = {{"y", "h"}};
static const struct import_options ranges_and_state = {
    .symbols = both, .n_symbols = 2, .states = kept_state, .n_states = 1};

/* says: in the network's text. reason: of the symbol T; NULL: it stays, or is a number.
 */
static const struct {
    const char *name, *text;
    const struct import_options *options; /* NULL: none */
    const char *says, *reason;
} told[] = {
    {"one number", "input x f @x#x4\nnode Exp x -> y\noutput y\n", &length_five,
     "shape = batch x 5 x 4\n\n[profile]\nbatch = 1\n", NULL},
    {"nothing", "input x f @x#x4\nnode Exp x -> y\noutput y\n", NULL,
     "shape = batch x T x 4\n\n[profile]\nbatch = 1\nT = 1..512: 512\n", NULL},
    {"no more than a table has",
     "input x f @x#\ninit d i 2 77 1\nnode ConstantOfShape d -> w\nnode Shape x -> s "
     "start=1\nnode Squeeze s -> n\n"
     "init z i - 0\ninit o i - 1\nnode Range z,n,o -> r\nnode Gather w,r -> g\n"
     "node Transpose g -> t perm=[1,0]\nnode Add x,t -> y\noutput y\n",
     NULL, "T = 1..77: 77\n", NULL},
    {"no less than a window has",
     "input x f @x1x#\ninit w f 1x1x3 1 2 3\nnode Conv x,w -> y\noutput y\n", NULL,
     "T = 3..512: 512\n", NULL},
    {"a list of sizes, no less than a window has",
     "input x f @x1x#\ninit w f 1x1x3 1 2 3\nnode Conv x,w -> y\noutput y\n",
     &listed_lengths, "T = 3..9: 4, 9\n", NULL},
    {"a range that the window does not have",
     "input x f @x1x#\ninit w f 1x1x3 1 2 3\nnode Conv x,w -> y\noutput y\n", &ranges,
     "shape = batch x 1 x 9\n", "the window spans 3 elements"},
    {"a list of sizes, of which one is between steps", "input x f @x2x#\n" HALVES,
     &between, "shape = batch x 2 x 32\n", "only dim 1 (the axis) may differ"},
    {"a product of that length",
     "input x f @x#\ninit d i 2 9 2\nnode ConstantOfShape d -> w\nnode MatMul x,w -> "
     "y\noutput y\n",
     &ranges, "shape = batch x 9\n\n[profile]\nbatch = 1, 3\n", "with 6 of it: node"},
    {"a factor",
     "input x f @x#\nnode Shape x -> s start=1\nnode Squeeze s -> n\n"
     "node Cast n -> c to=1\nnode Mul x,c -> y\noutput y\n",
     &ranges, "scale = 9\n", "layer 'y' holds it in scale"},
    {"a list from its length down",
     "input x f @x#\nnode Shape x -> s start=1\nnode Squeeze s -> n\ninit z i - 0\n"
     "init m i - -1\nnode Range n,z,m -> r\nnode Cast r -> c to=1\nnode Add x,c -> y\n"
     "output y\n",
     &ranges, "shape = batch x 9\n", "holds it in"},
    {"a branch for sequences of one",
     "input x f @x#\nnode Shape x -> s start=1\ninit o i 1 1\nnode Equal s,o -> e\n"
     "node Squeeze e -> c\nnode If c -> y then_branch={ else_branch={\n"
     "node Neg x -> a\noutput a\n}\nnode Exp x -> b\noutput b\n}\noutput y\n",
     &ranges, "shape = batch x 9\n", "T = 1 the network is another"},
    {"the same, from two on",
     "input x f @x#\nnode Shape x -> s start=1\ninit o i 1 1\nnode Equal s,o -> e\n"
     "node Squeeze e -> c\nnode If c -> y then_branch={ else_branch={\n"
     "node Neg x -> a\noutput a\n}\nnode Exp x -> b\noutput b\n}\noutput y\n",
     NULL, "T = 2..512: 512\n", NULL},
    {"what only both together change",
     "input x f @x#x40\nnode Shape x -> s end=1\nnode Shape x -> t start=1 end=2\n"
     "init b i 1 4\ninit l i 1 9\nnode Sub s,b -> p\nnode Sub t,l -> q\n"
     "node Mul p,q -> r\ninit o i 1 1\nnode Add r,o -> e\ninit z i 1 0\ninit a i 1 2\n"
     "node Slice x,z,e,a -> c\nnode Exp c -> y\noutput y\n",
     &ranges, "shape = batch x 9 x 40\n", "holds it in end"},
    {"a state",
     "input x f @x#\ninput h f @x#\nnode Add x,h -> y\nnode Exp x -> z\noutput z\n"
     "output y\n",
     &ranges_and_state, "[state h]\nshape = batch x 9\n",
     "it is dim 1 of the state 'h', which keeps its shape"},
};

Test(sizes, what_stays_and_what_does_not)
{
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        struct free_model m = free_model_open(told[i].text, "batch", "T", "");
        struct import *im = NULL;
        char *ini = NULL;
        size_t size;
        strata_error err = {0};
        const char *reason = "";
        cr_assert_eq(import_make(&im, m.onnx, m.registry, told[i].options, &err),
                     STRATA_OK, "%s: %s", told[i].name, err.message);
        cr_assert_eq(import_text(im, "weights", &ini, &size, &err), STRATA_OK, "%s",
                     err.message);
        cr_expect_not_null(strstr(ini, told[i].says), "%s: no '%s' in:\n%s", told[i].name,
                           told[i].says, ini);
        for (int k = 0; k < im->n_symbols; k++)
            if (strcmp(im->symbols[k].symbol, "T") == 0)
                reason = im->symbols[k].reason;
            else
                cr_expect_str_eq(im->symbols[k].reason, "", "%s: %s", told[i].name,
                                 im->symbols[k].reason);
        if (told[i].reason)
            cr_expect(strstr(reason, told[i].reason), "%s: '%s' is no '%s'", told[i].name,
                      reason, told[i].reason);
        else
            cr_expect_str_eq(reason, "", "%s: %s", told[i].name, reason);
        free(ini);
        import_free(im);
        free_model_close(&m);
    }
}

/* Without an option, and if it cannot stay, a size has to be given. */
static const struct {
    const char *name, *text, *says, *not ;
} refused[] = {
    {"a factor",
     "input x f @x#\nnode Shape x -> s start=1\nnode Squeeze s -> n\n"
     "node Cast n -> c to=1\nnode Mul x,c -> y\noutput y\n",
     "input 'x' has the free dim 'T': --dim T=N; it cannot stay free: layer 'y' holds it "
     "in scale",
     "512"},
    {"a product of one length",
     "input x f @x#\ninit d i 2 9 2\nnode ConstantOfShape d -> w\nnode MatMul x,w -> "
     "y\noutput y\n",
     "'T' was taken as 512, as no option says it: --dim T=N", "free dim"},
    {"an operator that no layer does", "input x f @x#\nnode Foo x -> y\noutput y\n",
     "no layer for it", "free dim"},
};

Test(sizes, sizes_that_have_to_be_given)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct free_model m = free_model_open(refused[i].text, "batch", "T", "");
        struct import *im = NULL;
        strata_error err = {0};
        cr_expect_eq(import_make(&im, m.onnx, m.registry, NULL, &err),
                     STRATA_EUNSUPPORTED, "%s", refused[i].name);
        cr_expect(strstr(err.message, refused[i].says), "%s: no '%s' in: %s",
                  refused[i].name, refused[i].says, err.message);
        cr_expect_null(strstr(err.message, refused[i].not ), "%s: %s", refused[i].name,
                       err.message);
        import_free(im);
        free_model_close(&m);
    }
}

/* What a long way computes of values, as the frames of speech of durations. */
Test(sizes, a_size_of_values_is_refused_with_a_way_out)
{
    enum { STEPS = 200 };
    char text[64 * STEPS];
    size_t n = (size_t)snprintf(text, sizeof text,
                                "ir 8\nopset 21\ninput x f 3\n"
                                "init a i - 0\ninit d i - 1\n");
    for (int i = 0; i < STEPS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "node Sin %s%d -> h%d\n",
                              i ? "h" : "x", i - 1, i);
    char *first = strstr(text, "x-1");
    memcpy(first, "x  ", 3);
    snprintf(text + n, sizeof text - n,
             "node ReduceSum h%d -> s keepdims=0\nnode Cast s -> b to=7\n"
             "node Range a,b,d -> y\noutput y\n",
             STEPS - 1);
    struct message bytes = model_bytes(text);
    const struct onnx_model *m = NULL;
    struct import *im = NULL;
    strata_registry *registry = NULL;
    strata_error err = {0};
    cr_assert_eq(strata_registry_create(&registry, NULL, &err), STRATA_OK);
    cr_assert_eq(onnx_parse(&m, bytes.bytes, bytes.size, "model", NULL, &err), STRATA_OK,
                 "%s", err.message);
    cr_expect_eq(import_make(&im, m, registry, NULL, &err), STRATA_EUNSUPPORTED);
    cr_expect_not_null(strstr(err.message, "input 'limit' must be constant; it is 'b'"),
                       "%s", err.message);
    cr_expect_not_null(strstr(err.message, "export the model with a number there"), "%s",
                       err.message);
    import_free(im);
    onnx_close(m);
    strata_registry_destroy(registry);
    free(bytes.bytes);
}

/* Two names that a key of [profile] cannot hold, and are one once spelled. */
Test(sizes, names_differ)
{
    struct free_model m =
        free_model_open("input x f s.0xs_0xs:0\nnode Exp x -> y\noutput y\n", "", "", "");
    struct import *im = NULL;
    char *ini = NULL;
    size_t size;
    strata_error err = {0};
    cr_assert_eq(import_make(&im, m.onnx, m.registry, NULL, &err), STRATA_OK, "%s",
                 err.message);
    cr_assert_eq(import_text(im, "weights", &ini, &size, &err), STRATA_OK);
    cr_expect(strstr(ini, "shape = s_0 x s_0_2 x s_0_3\n"), "%s", ini);
    free(ini);
    import_free(im);
    free_model_close(&m);
}

/* A name that stands first in one input is no batch where another does in more; of as
 * many, it is the outputs' one. */
Test(sizes, most_begin_with_the_batch)
{
    static const char *const models[] = {
        "input m f T\ninput a f BxT\ninput b f BxT\nnode Add a,b -> c\n"
        "node Mul c,m -> y\noutput y\n",
        "input m f T\ninput a f BxT\nnode Mul a,m -> y\noutput y f BxT\n",
        "input a f BxT\ninput m f T\nnode Mul a,m -> y\noutput y\n"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct free_model m = free_model_open(models[i], "", "", "");
        struct import *im = NULL;
        strata_error err = {0};
        cr_assert_eq(import_make(&im, m.onnx, m.registry, NULL, &err), STRATA_OK, "%s",
                     err.message);
        cr_assert_eq(im->n_symbols, 2, "%zu", i);
        cr_expect(strcmp(im->symbols[0].name, "B") == 0 && im->symbols[0].first &&
                      !im->symbols[1].first,
                  "%zu: the batch is %s", i, im->symbols[0].name);
        import_free(im);
        free_model_close(&m);
    }
}
