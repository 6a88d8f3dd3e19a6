/* SPDX-License-Identifier: Apache-2.0
 *
 * The key of an engine in a cache: SHA-256 of the network as it is written into engine
 * files, its weights' values, the plugins that are found and their builds, the device,
 * and where costs come from. Engines of equal keys are equal, where costs are of a file
 * or the model; measured ones may differ from machine to machine.
 */
#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "registry/math/mode.h"
#include "tools/deploy/deploy.h"

struct key {
    struct sha256_ctx hash;
    strata_error *err;
};

/* Length first, so that no two lists of texts are the same bytes. */
static void add(struct key *k, const void *data, size_t size)
{
    char length[24];
    const int n = snprintf(length, sizeof length, "%zu:", size);
    sha256_update(&k->hash, (size_t)n, (const uint8_t *)length);
    sha256_update(&k->hash, size, data);
}

static void add_text(struct key *k, const char *text)
{
    add(k, text, strlen(text));
}

static void add_number(struct key *k, int64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, n);
    add_text(k, text);
}

static int add_weights(struct key *k, const strata_network *net)
{
    void *data;
    size_t size;
    int status = engine_write_weights(&data, &size, net, k->err);
    if (status != STRATA_OK)
        return status;
    add(k, data, size);
    free(data);
    return STRATA_OK;
}

static int add_network(struct key *k, const strata_network *net, int math)
{
    char *text;
    size_t size;
    int status = network_write(&text, &size, net, math, k->err);
    if (status != STRATA_OK)
        return status;
    add(k, text, size);
    free(text);
    for (size_t i = 0; i < net->n_labels; i++)
        add_text(k, net->labels[i]);
    return add_weights(k, net);
}

/* Any of them may bring an impl. Where they lie says nothing. */
static void add_plugins(struct key *k, const strata_registry *r)
{
    for (size_t i = 0; i < registry_modules(r); i++) {
        const struct module_info m = registry_module(r, i);
        if (m.duplicate || m.rejected)
            continue;
        const char *slash = strrchr(m.path, '/');
        add_text(k, slash ? slash + 1 : m.path);
        add_text(k, m.version);
        add_text(k, m.build_id);
    }
}

static void add_device(struct key *k, const strata_handle *h)
{
    const struct device_properties *d = &h->properties;
    add_number(k, d->kind);
    add_text(k, d->name);
    add_text(k, d->build);
    add_number(k, d->sm);
    add_number(k, d->threads);
}

static int add_costs(struct key *k, const struct cost_options *o)
{
    struct file_bytes bytes;
    add_number(k, cost_kind_of(o->kind)); /* the environment, too, may say it */
    if (o->kind != COSTS_FILE)
        return STRATA_OK;
    int status = file_read(&bytes, o->file, UINT64_C(1) << 30, k->err);
    if (status != STRATA_OK)
        return status;
    add(k, bytes.data, bytes.size);
    file_free(&bytes);
    return STRATA_OK;
}

int deploy_key(char out[65], const struct tool_session *s, strata_error *err)
{
    struct key k = {.err = err};
    uint8_t digest[SHA256_DIGEST_SIZE];
    const int math = math_join(s->network->build.math, strata_get_math_mode(s->handle));
    sha256_init(&k.hash);
    add_text(&k, "strata-key 1");
    add_text(&k, strata_version());
    int status = add_network(&k, s->network, math);
    if (status == STRATA_OK)
        status = add_costs(&k, &s->network->build.costs);
    if (status != STRATA_OK)
        return status;
    add_plugins(&k, s->registry);
    add_device(&k, s->handle);
    sha256_digest(&k.hash, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
    return STRATA_OK;
}
