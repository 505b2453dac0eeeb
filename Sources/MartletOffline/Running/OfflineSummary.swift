import MartletClient

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
    let bodyByteCount: UInt64
    let secretFields: [String]
    let isRepeatable: Bool
    var attempts: Int
    var stage: Stage
    /// How many bytes it has in the directory.
    var storedByteCount: UInt64

    /// How long it was to live, in milliseconds.
    var lifetime: Int64 { max(0, expires.subtractingReportingOverflow(submitted).partialValue) }

    /// A summary.
    /// - Parameter recordByteCount: How many bytes its record has.
    init(_ request: FrozenRequest, recordByteCount: Int) {
        ticket = OfflineTicket(request)
        submitted = request.submitted
        expires = request.expires
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
