/* SPDX-License-Identifier: Apache-2.0
 *
 * INI text as networks, for the tests of loading. Layers come from
 * tests/modules/test_layers.c, compiled into the scratch folder.
 */
#ifndef TESTS_NETWORK_NETWORK_TEXT_H
#define TESTS_NETWORK_NETWORK_TEXT_H

#include "network/network.h"

#include "tests/broken/folders.h"

static strata_registry *registry;

static inline void network_start(void)
{
    folders_start();
    const char *file = build("layers.so", "modules/test_layers.c", SHARED);
    strata_registry_options options = {.struct_size = sizeof options,
                                       .files = &file,
                                       .n_files = 1,
                                       .no_default_path = 1};
    strata_error err = {0};
    cr_assert_eq(strata_registry_create(&registry, &options, &err), STRATA_OK, "%s",
                 err.message);
}

static inline void network_stop(void)
{
    strata_registry_destroy(registry);
    scratch_remove();
}

#define HEAD "[network]\nformat = 1\noutputs = out\n[input x]\nshape = 2 x 6\n"
#define FILE_WEIGHTS "[weights w]\nfile = w.safetensors\n"

/* w.safetensors in the scratch folder: fc.weight (4, 6) = 0, 1, ...; fc.bias (4); half
 * (4, 6, 1, 1) FP16 of 1.5; ints (3) I32; part.shift (2). */
static inline void spill_weights(void)
{
    static const char header[] =
        "{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[4,6],\"data_offsets\":[0,96]},"
        "\"fc.bias\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[96,112]},"
        "\"half\":{\"dtype\":\"F16\",\"shape\":[4,6,1,1],\"data_offsets\":[112,160]},"
        "\"ints\":{\"dtype\":\"I32\",\"shape\":[3],\"data_offsets\":[160,172]},"
        "\"part.shift\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[172,180]}} ";
    unsigned char bytes[1024];
    uint64_t n = sizeof header - 1;
    size_t at = 8 + (size_t)n;
    memcpy(bytes, &n, 8);
    memcpy(bytes + 8, header, n);
    for (int i = 0; i < 28; i++, at += 4)
        memcpy(bytes + at, &(float){(float)(i < 24 ? i : 100 + i - 24)}, 4);
    for (int i = 0; i < 24; i++, at += 2)
        memcpy(bytes + at, &(uint16_t){0x3e00}, 2);
    for (int32_t i = 0; i < 3; i++, at += 4)
        memcpy(bytes + at, &(int32_t){-i}, 4);
    memset(bytes + at, 0, 8), at += 8;
    spill("w.safetensors", bytes, at);
}

static inline strata_network *load_with(const char *text,
                                        const strata_network_options *options)
{
    strata_network *net;
    strata_error err = {0};
    const char *path = spill("net.ini", text, strlen(text));
    cr_assert_eq(strata_network_load(&net, path, registry, options, &err), STRATA_OK,
                 "%s", err.message);
    return net;
}

static inline strata_network *load(const char *text)
{
    return load_with(text, NULL);
}

static inline const struct network_layer *layer(const strata_network *net,
                                                const char *name)
{
    for (size_t i = 0; i < net->n_layers; i++)
        if (!strcmp(net->layers[i].name, name))
            return &net->layers[i];
    cr_assert_fail("no layer %s", name);
    return NULL;
}

static inline const struct network_tensor *tensor(const strata_network *net,
                                                  const char *name)
{
    for (size_t i = 0; i < net->n_tensors; i++)
        if (!strcmp(net->tensors[i].name, name))
            return &net->tensors[i];
    cr_assert_fail("no tensor %s", name);
    return NULL;
}

static inline void expect_dims(const strata_network *net, const char *name, int rank,
                               const int64_t *dims)
{
    const struct network_tensor *t = tensor(net, name);
    cr_assert_eq(t->rank, rank, "%s has rank %d", name, t->rank);
    for (int d = 0; d < rank; d++)
        cr_expect_eq(t->dims[d], dims[d], "%s, dim %d: %lld", name, d,
                     (long long)t->dims[d]);
}

#endif /* TESTS_NETWORK_NETWORK_TEXT_H */
