/// One way for bytes into the library, and what must hold for any bytes that take it.
///
/// The fuzzer's program and the tests run the same entries: the one on bytes that it makes up, the others on
/// those that are checked in.
package struct FuzzEntry: Sendable {
    /// How an entry is run.
    package enum Check: Sendable {
        /// At once, on the caller's thread.
        case immediate(@Sendable ([UInt8]) throws(FuzzFinding) -> Void)
        /// In a task, because it awaits.
        case awaiting(@Sendable ([UInt8]) async throws(FuzzFinding) -> Void)
    }

    /// The name, in lower case with hyphens: that of its folders of seeds, corpus and regressions.
    package let name: String
    /// How it is run.
    package let check: Check

    /// An entry that is run at once.
    package init(_ name: String, check: @escaping @Sendable ([UInt8]) throws(FuzzFinding) -> Void) {
        self.name = name
        self.check = .immediate(check)
    }

    /// An entry that awaits.
    package init(
        _ name: String, awaiting check: @escaping @Sendable ([UInt8]) async throws(FuzzFinding) -> Void
    ) {
        self.name = name
        self.check = .awaiting(check)
    }

    /// Runs the entry on an input.
    ///
    /// - Throws: the first property that does not hold.
    package func run(_ input: [UInt8]) async throws(FuzzFinding) {
        switch check {
        case .immediate(let check): try check(input)
        case .awaiting(let check): try await check(input)
        }
    }
}
