/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of impls: identity, limits, and the masks of their format rows.
 */
#include "registry/descriptor.h"

#include <string.h>

#include "registry/name.h"

#define MAX_MEMORY ((size_t)1 << 30) /* bytes of state or ctx; weights go elsewhere */
#define KNOWN_FORMATS ((UINT64_C(1) << STRATA_FORMAT_COUNT) - 1)
#define KNOWN_FLAGS                                                                      \
    (STRATA_NO_CAPTURE | STRATA_NONDETERMINISTIC | STRATA_INPLACE_OK |                   \
     STRATA_PAD_DIRTY | STRATA_PAD_IGNORED | STRATA_STRIDED_IN | STRATA_STRIDED_OUT |    \
     STRATA_WEIGHT_PACKED | STRATA_NAN_DROPPED | STRATA_OVERFLOW_DROPPED |               \
     STRATA_PITCHED_IN | STRATA_PITCHED_OUT | STRATA_WEIGHT_STORED |                     \
     STRATA_PITCHED_RESIDUAL | STRATA_ROUNDS_IN)
#define KNOWN_EPILOGUES                                                                  \
    (STRATA_EPILOGUE_SCALE | STRATA_EPILOGUE_BIAS | STRATA_EPILOGUE_RESIDUAL |           \
     STRATA_EPILOGUE_ACTIVATION)

#define refuse(err, ...) error_set(err, STRATA_EMODULE, __VA_ARGS__)

/* Bits, holes and SAME of one side of a row. */
static int check_side(const uint64_t masks[REGISTRY_PORTS], const char *side, size_t r,
                      bool same_first, strata_error *err)
{
    for (int p = 0; p < REGISTRY_PORTS; p++) {
        uint64_t mask = masks[p];
        if (mask & ~(KNOWN_FORMATS | STRATA_SAME))
            return refuse(err, "rows[%zu].%s[%d] 0x%llx has unknown formats", r, side, p,
                          (unsigned long long)mask);
        if ((mask & STRATA_SAME) && mask != STRATA_SAME)
            return refuse(err, "rows[%zu].%s[%d] joins STRATA_SAME with formats", r, side,
                          p);
        if (mask == STRATA_SAME && p == 0 && !same_first)
            return refuse(err, "rows[%zu].%s[0] is STRATA_SAME: as what?", r, side);
        if (p > 0 && mask != 0 && masks[p - 1] == 0)
            return refuse(err, "rows[%zu].%s[%d] is empty before %s[%d]", r, side, p - 1,
                          side, p);
    }
    return STRATA_OK;
}

static int check_rows(const struct registry_impl *x, strata_error *err)
{
    if (x->impl.rows.n == 0)
        return refuse(err, "it has no format rows");
    for (uint32_t r = 0; r < x->impl.rows.n; r++) {
        const struct registry_row *row = &x->rows[r];
        if (check_side(row->in, "in", r, false, err) != STRATA_OK ||
            check_side(row->out, "out", r, row->in[0] != 0, err) != STRATA_OK)
            return STRATA_EMODULE;
        if (row->out[0] == 0)
            return refuse(err, "rows[%u].out[0] is empty: no format is allowed", r);
    }
    return STRATA_OK;
}

static int check_bits(const char *field, uint64_t value, uint64_t known,
                      strata_error *err)
{
    if ((value & ~known) == 0)
        return STRATA_OK;
    return refuse(err, "%s 0x%llx has unknown bits", field, (unsigned long long)value);
}

static int check_memory(const char *field, size_t bytes, strata_error *err)
{
    if (bytes <= MAX_MEMORY)
        return STRATA_OK;
    return refuse(err, "%s %zu > %zu", field, bytes, MAX_MEMORY);
}

static int check_fields(const strata_impl *m, strata_error *err)
{
    if (m->device < 0 || m->device >= STRATA_DEVICE_KINDS)
        return refuse(err, "device %d is unknown", m->device);
    if (!m->run)
        return refuse(err, "run is NULL");
    if (m->min_sm < 0 || m->max_sm < 0 || (m->max_sm != 0 && m->max_sm < m->min_sm))
        return refuse(err, "min_sm %d and max_sm %d leave no device", m->min_sm,
                      m->max_sm);
    if (!(m->efficiency >= 0 && m->efficiency <= 1))
        return refuse(err, "efficiency %g is outside [0, 1]", m->efficiency);
    if ((m->epilogues & STRATA_EPILOGUE_ACTIVATION) && m->activations == 0)
        return refuse(err, "STRATA_EPILOGUE_ACTIVATION without activations");
    if ((m->flags & STRATA_WEIGHT_PACKED) && !m->setup)
        return refuse(err, "STRATA_WEIGHT_PACKED without setup, which is to pack it");
    for (size_t i = 0; i < ARRAY_LENGTH(m->in_place); i++)
        if (m->in_place[i] > REGISTRY_PORTS)
            return refuse(err, "in_place[%zu] is %d: 1 + an input port, at most %d", i,
                          m->in_place[i], REGISTRY_PORTS);
    int status = check_bits("flags", (uint32_t)m->flags, KNOWN_FLAGS, err);
    if (status == STRATA_OK)
        status = check_bits("epilogues", (uint32_t)m->epilogues, KNOWN_EPILOGUES, err);
    if (status == STRATA_OK)
        status = check_bits("activations", m->activations,
                            (UINT64_C(1) << STRATA_ACTIVATION_COUNT) - 1, err);
    if (status == STRATA_OK)
        status = check_memory("state_size", m->state_size, err);
    if (status == STRATA_OK)
        status = check_memory("ctx_size", m->ctx_size, err);
    return status;
}

int implementation_check(const struct registry_impl *impls, size_t i, strata_error *err)
{
    const strata_impl *m = &impls[i].impl;
    if (!m->name)
        return refuse(err, "impls[%zu].name is NULL", i);
    if (!name_is_tag(m->name, strlen(m->name)))
        return refuse(err, "impls[%zu].name '%s' is not [A-Za-z0-9][A-Za-z0-9_.+~-]*", i,
                      m->name);
    for (size_t j = 0; j < i; j++) {
        if (impls[j].impl.id == m->id)
            return refuse(err, "impls[%zu] '%s' and impls[%zu] '%s' both have id %u", j,
                          impls[j].impl.name, i, m->name, m->id);
        if (impls[j].impl.device == m->device && !strcmp(impls[j].impl.name, m->name))
            return refuse(err, "impls[%zu] and impls[%zu] are both named '%s'", j, i,
                          m->name);
    }
    int status = check_fields(m, err);
    if (status == STRATA_OK)
        status = check_rows(&impls[i], err);
    if (status != STRATA_OK)
        error_prefix(err, "impls[%zu] '%s'", i, m->name);
    return status;
}

/* -1 ports: no limit. */
static int check_ports(const uint64_t masks[REGISTRY_PORTS], const char *side, size_t r,
                       int32_t ports, strata_error *err)
{
    if (ports != 0 && masks[0] == 0)
        return refuse(err, "rows[%zu].%s[0] is empty: no format is allowed", r, side);
    for (int p = 0; p < REGISTRY_PORTS; p++)
        if (masks[p] != 0 && ports >= 0 && p >= ports)
            return refuse(err, "rows[%zu].%s[%d] is set, the layer has %d", r, side, p,
                          ports);
    return STRATA_OK;
}

int implementation_ports(const struct registry_impl *impls, size_t n,
                         const strata_layer *layer, strata_error *err)
{
    for (size_t i = 0; i < n; i++)
        for (uint32_t r = 0; r < impls[i].impl.rows.n; r++) {
            const struct registry_row *row = &impls[i].rows[r];
            if (check_ports(row->in, "in", r, layer->max_in, err) == STRATA_OK &&
                check_ports(row->out, "out", r, layer->n_out, err) == STRATA_OK)
                continue;
            error_prefix(err, "impls[%zu] '%s'", i, impls[i].impl.name);
            return STRATA_EMODULE;
        }
    return STRATA_OK;
}
