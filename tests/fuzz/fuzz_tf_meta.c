/* fuzz_tf_meta.c - whatever the bytes are, a graph is refused with words or its numbers are sound.
 */
#include "tf_meta.h"

#include "fuzz_check.h"
#include "fuzz_entry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_tf_meta m;
    struct mr_tensor_table saved;
    struct mr_error err = {0};
    mr_tensor_table_init(&saved);
    mr_tensor_table_add(&saved, &(struct mr_tensor){.name = "w", .dtype = MR_DT_F32});
    int r = mr_tf_meta_parse("fuzz", data, size, size % 2 ? &saved : NULL, &m, &err);
    REQUIRE(r <= 0 && r == err.code && !r == !err.text[0]);
    REQUIRE(r || (m.n_variables <= m.n_nodes && m.n_nodes <= size));
    mr_tensor_table_fini(&saved);
    return 0;
}
