"""How numbers and texts of a table become features without telling about anybody: declared, paid for, or taken."""
