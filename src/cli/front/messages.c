/* SPDX-License-Identifier: MIT */
/* cli/front/messages.c - see messages.h. */
#include "cli/front/messages.h"

#include <string.h>

#include "cli/front/command.h"
#include "cli/front/help.h"
#include "kit/tree.h"
#include "sql/sql.h"
#include "sql/table_doc.h"

static void put_message(struct tmk_tree *t, const char *text)
{
    if (text && *text)
        tmk_tree_text(t, NULL, text);
}

/* Put paragraphs (cli/front/command.h); of an entry of a list, what the term means. */
static void put_paragraphs(struct tmk_tree *t, const char *const *paragraphs)
{
    for (; paragraphs && *paragraphs; paragraphs++) {
        const char *tab = strchr(*paragraphs, '\t');
        put_message(t, tab ? tab + 1 : *paragraphs);
    }
}

static void put_command(struct tmk_tree *t, const struct tmk_command *c)
{
    put_message(t, c->summary);
    for (unsigned i = 0; c->examples[i]; i += 2)
        put_message(t, c->examples[i + 1]);
    put_paragraphs(t, c->description);
    for (unsigned i = 0; i < c->n_options; i++)
        put_message(t, c->options[i].help);
    put_paragraphs(t, c->exit_status);
    put_paragraphs(t, c->json);
}

static void put_sql_table(struct tmk_tree *t, const struct tmk_sql_table *table)
{
    put_message(t, table->meaning);
    for (size_t i = 0; i < table->n_columns; i++)
        put_message(t, table->columns[i].meaning);
}

void tmk_messages_write(FILE *out)
{
    struct tmk_tree t;
    size_t n_tables;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n_tables);
    tmk_tree_init_json(&t, out, 2);
    tmk_tree_list(&t, NULL);
    for (unsigned i = 0; i < TMK_N_GROUPS; i++)
        put_message(&t, tmk_help_groups[i]);
    put_paragraphs(&t, tmk_help_run_note);
    put_paragraphs(&t, tmk_help_exit_status);
    for (unsigned i = 0; tmk_commands[i]; i++)
        put_command(&t, tmk_commands[i]);
    for (size_t i = 0; i < n_tables; i++)
        put_sql_table(&t, &tables[i]);
    tmk_tree_end(&t);
}
