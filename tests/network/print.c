/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks that are printed as they were written, others in the shorter way to say the
 * same, and of several files.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
    {"weights of another prefix", HEAD X W FC "weight = w:other\n", NULL},
    {"how it is built, run and measured",
     HEAD "\n[build]\nprecision = fp16\nformats = fp16:nchw, fp16:nhwc\n"
          "workspace = 64MiB\nfusion = no\nnan = propagate\ncosts = analytic\n"
          "\n[runtime]\ndevice = host\nthreads = 2\n"
          "\n[bench]\nwarmup = 20ms\npercentiles = 50, 99\n" X Y,
     NULL},
    {"ranges of symbols",
     "[network]\nformat = 1\nname = n\noutputs = y\n[profile]\n"
     "N = 1..8: 8, 1\nH = 1..64\nW = 8..64 : 32\n"
     "[input x]\nshape = N x 3 x H x W\n" Y,
     HEAD "\n[input x]\nshape = N x 3 x H x W\n\n[profile]\nN = 1, 8\n"
          "H = 1..64: 64\nW = 8..64: 32, 64\n" Y},
    {"symbols",
     HEAD "\n[input x]\nshape = N x 3 x side x side\n\n[profile]\nN = 2\nside = 8\n"
          "\n[layer y]\ntype = Shuffle\nshape = N, 3, 64\n",
     NULL},
    {"a symbol of several values",
     "[network]\nformat = 1\nname = n\noutputs = y\n[profile]\nN = 8,1\n"
     "[input x]\nshape =  N x 3x8 x 8\n" Y,
     HEAD "\n[input x]\nshape = N x 3 x 8 x 8\n\n[profile]\nN = 1, 8\n" Y},
    {"random weights of two sections",
     HEAD X "\n[weights a]\nrandom = 1\n\n[weights b]\nrandom = 2\nstrict = yes\n" FC
            "units = 4\nweight = a\nbias = b\n",
     NULL},
    {"a weight that has the name of an attribute",
     HEAD X "\n[weights a]\nrandom = 1\n"
            "\n[layer s]\ntype = Scale\nscale = 2\n"
            "\n[layer y]\ntype = Scale\nscale = a\n",
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
    const int status = network_print(out, &size, network, registry, err);
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

/* ---- of files ------------------------------------------------------------------------
 */

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", path);
}

static void write_weights(const char *folder, const char *name)
{
    char path[256];
    strata_error err = {0};
    const struct weight_view view = {.name = "weight",
                                     .dtype = WEIGHT_F32,
                                     .rank = 2,
                                     .dims = {2, 192},
                                     .data = numbers,
                                     .bytes = sizeof numbers};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cr_assert_eq(weights_save(path, &view, 1, &err), STRATA_OK, "%s", err.message);
}

/* The printed text of FOLDER/net.ini, which is then FOLDER/printed.ini. */
static char *print_file(const char *folder, const char *file,
                        const strata_network_options *options)
{
    char path[256], *out = NULL;
    strata_registry *registry = NULL;
    strata_network *network = NULL;
    strata_error err = {0};
    size_t size;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    cr_assert_eq(strata_registry_create(&registry, NULL, &err), STRATA_OK);
    cr_assert_eq(strata_network_load(&network, path, registry, options, &err), STRATA_OK,
                 "%s", err.message);
    cr_assert_eq(network_print(&out, &size, network, registry, &err), STRATA_OK, "%s",
                 err.message);
    strata_network_destroy(network);
    strata_registry_destroy(registry);
    return out;
}

static void remove_files(const char *folder)
{
    static const char *const names[] = {"a.safetensors", "part/b.safetensors",
                                        "part/b.ini",    "part",
                                        "classes",       "net.ini",
                                        "printed.ini",   ""};
    char path[256];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        cr_expect_eq(remove(path), 0, "%s", path);
    }
}

/* Files of several folders, includes, variables and overrides, as one file. */
Test(print, files)
{
    char folder[] = "/tmp/print-XXXXXX", below[64];
    const char *const set[] = {"build.precision=fp16"};
    const strata_network_options options = {
        .struct_size = sizeof options, .n_set = 1, .set = set};
    cr_assert(mkdtemp(folder));
    snprintf(below, sizeof below, "%s/part", folder);
    cr_assert_eq(mkdir(below, 0700), 0);
    write_weights(folder, "a.safetensors");
    write_weights(below, "b.safetensors");
    write_file(below, "b.ini",
               "[weights b]\nfile = b.safetensors\nanywhere = no\n"
               "[build]\nprecision = bf16\nworkspace = 64MiB\n"
               "[runtime]\nthreads = 2\n");
    write_file(folder, "classes", "one\ntwo\n");
    write_file(folder, "net.ini",
               "; a comment\n[vars]\nside = 8\n[include]\nfile = part/b.ini\n"
               "[network]\nformat = 1\noutputs = y, z\nname = n\nlabels = classes\n"
               "[input x]\nshape = 1 x 3 x ${side} x ${side}\n"
               "[weights a]\nfile = a.safetensors\n"
               "[layer y]\ntype = FullyConnected\nweight = a:weight\n"
               "[layer z]\ntype = FullyConnected\ninputs = x\nweight = b:weight\n");
    char *printed = print_file(folder, "net.ini", &options);
    cr_expect_str_eq(
        printed, "[network]\nformat = 1\nname = n\nlabels = classes\noutputs = y, z\n"
                 "\n[build]\nprecision = fp16\nworkspace = 64MiB\n"
                 "\n[runtime]\nthreads = 2\n"
                 "\n[input x]\nshape = 1x3x8x8\n"
                 "\n[weights b]\nfile = part/b.safetensors\nanywhere = no\n"
                 "\n[weights a]\nfile = a.safetensors\n"
                 "\n[layer y]\ntype = FullyConnected\nweight = a:weight\n"
                 "\n[layer z]\ntype = FullyConnected\ninputs = x\nweight = b:weight\n");
    write_file(folder, "printed.ini", printed);
    char *again = print_file(folder, "printed.ini", NULL);
    cr_expect_str_eq(again, printed);
    free(again);
    free(printed);
    remove_files(folder);
}
