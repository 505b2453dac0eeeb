import MartletClient
import MartletTransport

/// What is kept in memory of a request: all but its fields, its body, and the answer to it.
struct OfflineSummary: Sendable {
    /// What is to become of it.
    enum Stage: Sendable {
        case waiting
        case dead
        case uncertain
    }

    let ticket: OfflineTicket
    let submitted: Int64
    var expires: Int64
    /// ``expires`` on the clock that counts from the start of the computer.
    let bootDeadline: BootDeadline?
    let bodyByteCount: UInt64
    let secretFields: [String]
    let isRepeatable: Bool
    var attempts: Int
    var stage: Stage
    /// How many bytes it has in the directory.
    var storedByteCount: UInt64

    /// How long it was to live, in milliseconds.
    var lifetime: Int64 { max(0, expires.subtractingReportingOverflow(submitted).partialValue) }

    /// The time of day before which a clock was evidently not set: 2020-01-01.
    private static let earliestPlausibleTime: Int64 = 1_577_836_800_000

    /// The moment at which the request expires, in a process that finds it in its directory.
    /// - Parameters:
    ///   - boot: The start of the computer that `now` counts from.
    ///   - wall: The time of day, in milliseconds since 1970.
    func deadline(now: MonotonicTime, boot: String?, wall: Int64) -> MonotonicTime {
        if let bootDeadline, bootDeadline.boot == boot {
            return min(bootDeadline.time, now.advanced(by: .milliseconds(lifetime)))
        }
        // Of two times of day, one of which was never set, nothing follows.
        guard min(submitted, wall) >= OfflineSummary.earliestPlausibleTime else {
            return now.advanced(by: .milliseconds(lifetime))
        }
        // A clock that was set back makes no request live longer than it was to.
        let left = min(expires.subtractingReportingOverflow(wall).partialValue, lifetime)
        return now.advanced(by: .milliseconds(left))
    }

    /// A summary.
    /// - Parameter recordByteCount: How many bytes its record has.
    init(_ request: FrozenRequest, recordByteCount: Int) {
        ticket = OfflineTicket(request)
        submitted = request.submitted
        expires = request.expires
        bootDeadline = request.bootDeadline
        bodyByteCount = request.body.byteCount
        secretFields = request.secretFields
        isRepeatable = request.isRepeatable
        attempts = Int(request.attempts)
        stage =
            switch request.stage {
            case .waiting, .sending: .waiting
            case .dead: .dead
            case .uncertain: .uncertain
            }
        storedByteCount = UInt64(recordByteCount) + request.body.storedByteCount
    }
}
