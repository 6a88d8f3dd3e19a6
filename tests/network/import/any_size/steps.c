/* SPDX-License-Identifier: Apache-2.0
 *
 * Models that take multiples of a size alone, and parts of sizes that layers hold.
 */
#include "tests/network/import/any_size/any_size.h"

/* Halved, made a list, and made an image again. */
#define TOKENS                                                                           \
    "init l i 3 0 3 -1\ninit k i 4 0 3 0 0\ninit o i 1 0\ninit s f 4 1 1 2 2\n"          \
    "node MaxPool x -> p kernel_shape=[2,2] strides=[2,2]\nnode Reshape p,l -> a\n"      \
    "node Transpose a -> t perm=[0,2,1]\nnode Softmax t -> f axis=-1\n"                  \
    "node Transpose f -> g perm=[0,2,1]\nnode Shape p -> d\nnode Reshape g,d -> q\n"     \
    "node Resize q,_,s -> u mode='nearest'\nnode Concat u,u,x,x -> w axis=1\n"           \
    "node DepthToSpace w -> z blocksize=2\nnode Add x,u -> v\nnode ReduceMean v,m -> "   \
    "n\n"                                                                                \
    "init m i 2 2 3\nnode Mul z,n -> y\noutput y\n"

Test(import_steps, parts_of_sizes_in_reshapes)
{
    static const struct import_symbol symbols[] = {
        {.name = "batch", .n = 2, .values = {1, 2}},
        {.name = "T", .n = 2, .values = {8, 16}},
        {.name = "P", .n = 2, .values = {12, 24}},
    };
    static const struct import_options o = {.symbols = symbols, .n_symbols = 3};
    static const char *const sizes[][3] = {
        {"1", "8", "12"}, {"2", "16", "24"}, {"2", "4", "18"}, {"1", "6", "2"}};
    static const char text[] = "input x f @x3x#x$\n" TOKENS;
    struct free_model m = free_model_open(text, "batch", "T", "P");
    struct imported any;
    open_import(&any, &m, &o, "parts");
    for (int k = 0; k < any.im->n_symbols; k++)
        cr_expect_str_eq(any.im->symbols[k].reason, "", "%s", any.im->symbols[k].reason);
    cr_expect_not_null(strstr(any.text, "P/2"), "%s", any.text);
    cr_expect_not_null(strstr(any.text, "P*2"), "%s", any.text);
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        struct free_model at =
            free_model_open(text, sizes[k][0], sizes[k][1], sizes[k][2]);
        struct imported fixed;
        open_import(&fixed, &at, NULL, "parts");
        expect_same(&any, &fixed, "parts", sizes[k][2]);
        imported_free(&fixed);
        free_model_close(&at);
    }
    imported_free(&any);
    free_model_close(&m);
}

Test(import_steps, halves_that_are_joined)
{
    static const struct import_symbol listed[] = {
        {.name = "T", .n = 2, .values = {24, 32}}};
    static const struct import_symbol told_steps[] = {
        {.name = "T", .n = 1, .values = {32}, .range = true, .least = 8, .step = 8}};
    static const struct {
        struct import_options options;
        const char *says;
    } all[] = {
        {{0}, "T = 4..512/4: 512\n"},
        {{.symbols = listed, .n_symbols = 1}, "T = 4..32/4: 24, 32\n"},
        {{.symbols = told_steps, .n_symbols = 1}, "T = 8..32/8: 32\n"},
    };
    static const char *const lengths[] = {"8", "16", "24", "32"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct free_model m =
            free_model_open("input x f @x2x#\n" HALVES, "batch", "T", "");
        struct imported any;
        open_import(&any, &m, &all[i].options, all[i].says);
        cr_expect_not_null(strstr(any.text, all[i].says), "no '%s' in:\n%s", all[i].says,
                           any.text);
        for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
            struct free_model at =
                free_model_open("input x f @x2x#\n" HALVES, "1", lengths[k], "");
            struct imported fixed;
            open_import(&fixed, &at, NULL, lengths[k]);
            expect_same(&any, &fixed, all[i].says, lengths[k]);
            imported_free(&fixed);
            free_model_close(&at);
        }
        imported_free(&any);
        free_model_close(&m);
    }
}
