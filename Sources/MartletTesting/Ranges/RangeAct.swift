/// What a range origin does to the answers of some requests.
package struct RangeAct: Sendable {
    /// Which requests it is done to.
    package var applies: @Sendable (RangeRequest) -> Bool
    /// What is done to the answer.
    package var change: @Sendable (inout RangeAnswer) -> Void

    /// An act.
    package init(
        on applies: @escaping @Sendable (RangeRequest) -> Bool,
        _ change: @escaping @Sendable (inout RangeAnswer) -> Void
    ) {
        self.applies = applies
        self.change = change
    }

    /// Changes each answer.
    package static func always(_ change: @escaping @Sendable (inout RangeAnswer) -> Void) -> RangeAct {
        RangeAct(on: { _ in true }, change)
    }

    /// Changes the answer to one request, by its number.
    package static func onRequest(
        _ number: Int, _ change: @escaping @Sendable (inout RangeAnswer) -> Void
    ) -> RangeAct {
        RangeAct(on: { $0.number == number }, change)
    }

    /// Changes the answers to requests for parts.
    package static func onRanges(_ change: @escaping @Sendable (inout RangeAnswer) -> Void) -> RangeAct {
        RangeAct(on: { $0.range != nil }, change)
    }

    /// Changes the answers to requests for what is behind the first byte.
    package static func onResumptions(_ change: @escaping @Sendable (inout RangeAnswer) -> Void) -> RangeAct {
        RangeAct(on: { $0.isResumption }, change)
    }

    /// Ends the connection in the body of the answer to one request.
    package static func cut(
        request number: Int, after byteCount: UInt64, by kind: OriginFault.Kind = .close
    ) -> RangeAct {
        .onRequest(number) { $0.fault = OriginFault(kind, afterBodyBytes: byteCount) }
    }

    /// Holds the answer to one request: behind so many bytes the signal `name` is raised and `name go` is awaited.
    package static func hold(request number: Int, after byteCount: UInt64, _ name: String) -> RangeAct {
        .onRequest(number) { $0.gate = (name, byteCount) }
    }

    /// Answers requests from one number on in another way altogether.
    package static func answer(
        from number: Int, through last: Int = .max, _ response: OriginResponse
    ) -> RangeAct {
        RangeAct(on: { $0.number >= number && $0.number <= last }) { $0.replacement = response }
    }
}
