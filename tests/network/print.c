/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks that are printed as they were written, others in the shorter way to say the
 * same, and what is refused.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "network/network.h"

#define HEAD "[network]\nformat = 1\nname = n\noutputs = y\n"
#define X "\n[input x]\nshape = 1x3x8x8\n"
#define Y "\n[layer y]\ntype = Activation\n"
#define W "\n[weights w]\nfile = weights\n"
#define FC "\n[layer y]\ntype = FullyConnected\n"

static const struct {
    const char *name, *text, *printed; /* printed NULL: the text */
} cases[] = {
    {"a layer", HEAD X Y, NULL},
    {"a name with blanks and $",
     "[network]\nformat = 1\nname = \"a # of $$\"\noutputs = y\n" X Y, NULL},
    {"defaults, versions and inputs that need not be told",
     "[network]\nformat = 1\nname = \"n\"\noutputs = y\noutput_formats = fp32:nchw\n"
     "[input x]\nshape = 1, 3, 8, 8\nscale = 1\nchannels = rgb\nformat = fp32:nchw\n"
     "[layer y]\ntype = core::Activation@1\ninputs = x\nkind = relu\n",
     HEAD X Y},
    {"an image's input",
     HEAD X "format = u8:nchw\npads = any\nchannels = bgr\nresize = letterbox\n"
            "antialias = yes\nfill = 114\nscale = 0.1\nmean = 1, 2, 3\nstd = 2\n" Y,
     NULL},
    {"an input's dtype",
     HEAD "\n[input x]\nshape = 4\ndtype = i64\n\n[layer y]\ntype = Identity\n", NULL},
    {"formats",
     "[network]\nformat = 1\nname = n\noutputs = y\noutput_formats = fp16:nhwc\n" X Y
     "format = fp32:nchw, fp16:nchw\n",
     NULL},
    {"ports and an input further up",
     "[network]\nformat = 1\nname = n\noutputs = y, s\n" X
     "\n[layer s]\ntype = Slice\nsplit = 1, 2\n"
     "\n[layer y]\ntype = Concatenation\ninputs = s:1, x\n",
     NULL},
    {"weights", HEAD X W FC "weights = w:y\n", NULL},
    {"weights of another name", HEAD X W FC "weight = w:other\nbias = zeros\n", NULL},
    {"a weight that the file has, left out", HEAD X W FC "weights = w:y\nbias = none\n",
     NULL},
};

static float numbers[2 * 192];

static void *make_weights(size_t *size)
{
    const struct weight_view views[] = {
        {.name = "y.weight",
         .dtype = WEIGHT_F32,
         .rank = 2,
         .dims = {2, 192},
         .data = numbers,
         .bytes = sizeof numbers},
        {.name = "y.bias",
         .dtype = WEIGHT_F32,
         .rank = 1,
         .dims = {2},
         .data = numbers,
         .bytes = 8},
        {.name = "other",
         .dtype = WEIGHT_F32,
         .rank = 2,
         .dims = {2, 192},
         .data = numbers,
         .bytes = sizeof numbers},
    };
    strata_error err = {0};
    void *bytes = NULL;
    cr_assert_eq(weights_write(&bytes, size, views, 3, &err), STRATA_OK, "%s",
                 err.message);
    return bytes;
}

static int print(char **out, const char *text, strata_error *err)
{
    struct network_memory memory = {.text = text, .text_size = strlen(text)};
    strata_registry *registry = NULL;
    strata_network *network = NULL;
    void *weights = make_weights(&memory.weights_size);
    size_t size;
    memory.weights = weights;
    cr_assert_eq(strata_registry_create(&registry, NULL, err), STRATA_OK, "%s",
                 err->message);
    cr_assert_eq(network_parse(&network, &memory, "text", registry, err), STRATA_OK,
                 "%s\n%s", err->message, text);
    const int status =
        network_print(out, &size, network, NETWORK_MEMORY_WEIGHTS, registry, err);
    strata_network_destroy(network);
    strata_registry_destroy(registry);
    free(weights);
    return status;
}

Test(print, shortest_way)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *wanted = cases[i].printed ? cases[i].printed : cases[i].text;
        strata_error err = {0};
        char *found = NULL;
        cr_assert_eq(print(&found, cases[i].text, &err), STRATA_OK, "%s: %s",
                     cases[i].name, err.message);
        cr_expect_str_eq(found, wanted, "%s:\n%s\nshould be\n%s", cases[i].name, found,
                         wanted);
        free(found);
    }
}

static const struct {
    const char *text, *says;
} refused[] = {
    {HEAD X "[build]\nprecision = fp16\n" Y, "[build] cannot be printed"},
    {HEAD X "[bench]\niterations = 3\n" Y, "[bench] cannot be printed"},
    {HEAD X "[weights w]\nrandom = 1\n" FC "units = 2\nweights = w\n",
     "weight 'y.weight' is random"},
};

Test(print, refusals)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        strata_error err = {0};
        char *found = NULL;
        cr_expect_eq(print(&found, refused[i].text, &err), STRATA_EUNSUPPORTED, "%s",
                     refused[i].says);
        cr_expect_null(found);
        cr_expect(strstr(err.message, refused[i].says), "no '%s' in: %s", refused[i].says,
                  err.message);
    }
}
