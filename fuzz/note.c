/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: the plugin preflight over arbitrary bytes. Whatever it accepts must
 * be complete and fit for look-ups. Seeds: plugin files, whole and cut.
 */
#include "registry/note.h"

#include <stdlib.h>
#include <string.h>

#include "registry/name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct note_result r;
    strata_error err = {0};
    int status = note_parse(&r, data, size, &err);
    require(status == STRATA_OK || (status == STRATA_EMODULE && err.length > 0));
    require(memchr(r.build_id, 0, sizeof r.build_id));
    require(memchr(r.note.ns, 0, sizeof r.note.ns) &&
            memchr(r.note.version, 0, sizeof r.note.version) &&
            memchr(r.note.layers, 0, sizeof r.note.layers));
    if (status != STRATA_OK)
        return 0;
    require(r.note.abi_major == STRATA_ABI_MAJOR);
    require(name_is_namespace(r.note.ns, strlen(r.note.ns)));
    const char *rest = r.note.layers, *item;
    size_t n;
    while ((item = name_next(&rest, ',', &n)))
        require(name_is_layer(item, n) ||
                (item[0] == '+' && name_is_qualified(item + 1, n - 1)));
    (void)note_accept(&r.note, 12080, NULL);
    return 0;
}
