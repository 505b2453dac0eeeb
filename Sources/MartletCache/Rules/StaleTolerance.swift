/// How stale a response a request accepts (`max-stale`, RFC 9111 §5.2.1.2).
package enum StaleTolerance: Equatable, Sendable {
    /// However stale.
    case any
    /// Stale for at most so many seconds, 0…2^31.
    case seconds(Int64)

    /// Whether a response is accepted that became stale so many milliseconds ago.
    package func accepts(stalenessInMilliseconds staleness: Int64) -> Bool {
        switch self {
        case .any: true
        case .seconds(let seconds): staleness <= seconds * 1000
        }
    }

    /// The stricter of both.
    func stricter(_ other: StaleTolerance?) -> StaleTolerance {
        switch (self, other) {
        case (_, nil): self
        case (.any, .some(let other)): other
        case (.seconds, .any): self
        case (.seconds(let mine), .seconds(let others)): .seconds(min(mine, others))
        }
    }
}
