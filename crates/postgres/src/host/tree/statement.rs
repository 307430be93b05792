//! Statements that are no queries, as the parser makes them, and what hangs below each.
//!
//! `Node::as_a` tells them apart. Whoever changes a statement works on a copy of it, by its address.

use pgrx::pg_sys::{self, NodeTag};

use super::list::List;
use super::node::{Node, Tagged, Typed, kinds};

kinds! {
    Query T_Query { statement: utilityStmt Option, tables: rtable List<Typed<'a, pg_sys::RangeTblEntry>> }
    RangeTblEntry T_RangeTblEntry {}
    RangeVar T_RangeVar { schema: schemaname Text, name: relname Text }
    String T_String { text: sval Text }
    DefElem T_DefElem { namespace: defnamespace Text, name: defname Text, value: arg Option }
    ColumnDef T_ColumnDef { name: colname Text }
    CreateStmt T_CreateStmt {
        relation: relation Typed<pg_sys::RangeVar>,
        options: options List<Typed<'a, pg_sys::DefElem>>,
        method: accessMethod Text,
        parents: inhRelations List<Typed<'a, pg_sys::RangeVar>>,
    }
    CreateTableAsStmt T_CreateTableAsStmt { into_clause: into Option }
    IntoClause T_IntoClause {
        relation: rel Typed<pg_sys::RangeVar>,
        options: options List<Typed<'a, pg_sys::DefElem>>,
        method: accessMethod Text,
    }
    ExplainStmt T_ExplainStmt { query: query Option }
    AlterTableStmt T_AlterTableStmt { commands: cmds List<Typed<'a, pg_sys::AlterTableCmd>> }
    AlterTableCmd T_AlterTableCmd { name: name Text, definition: def Option }
    CreateTrigStmt T_CreateTrigStmt { function: funcname List<Typed<'a, pg_sys::String>> }
    CreateSchemaStmt T_CreateSchemaStmt { name: schemaname Text }
}

impl<'a> Typed<'a, pg_sys::AlterTableCmd> {
    /// The options that it sets or resets, where it is a command that does.
    pub fn options(self) -> List<'a, Typed<'a, pg_sys::DefElem>> {
        use pg_sys::AlterTableType as Kind;
        let list = match self.subtype {
            Kind::AT_SetRelOptions | Kind::AT_ResetRelOptions => self.def.cast(),
            _ => std::ptr::null_mut(),
        };
        // SAFETY: the definition of these commands is a list of options.
        unsafe { List::new(list) }
    }
}
