"""Pure: visibility, rules, Cedar, limits, redaction. A call and the rules go in, a verdict comes out."""
