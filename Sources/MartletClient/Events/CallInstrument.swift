/// Measures or traces one call: what the package traits `Metrics` and `Tracing` add.
protocol CallInstrument: Sendable {
    /// Takes note of what happened, at once.
    func observe(_ event: SessionEvent, hop: HTTPHop?)
    /// Adds the fields by which the server can tell whose request this is.
    func inject(into fields: inout HTTPFields)
}
