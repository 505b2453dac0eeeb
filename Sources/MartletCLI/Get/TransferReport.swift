import HTTPTypes
import Martlet
import MartletWire

/// What is known of a transfer when it is over, be it by failing.
struct TransferReport: Sendable {
    var number: Int
    var givenURL: String
    var url: HTTPURL
    var method: String
    /// The name of the file that was written.
    var file: String?
    var referer: String?
    /// The final head.
    var head: ResponseHead?
    /// All heads, trailers included, as they were shown: their bytes.
    var headByteCount = 0
    var metrics: HTTPMetrics?
    /// The head that was sent; empty where nobody asked for it.
    var requestHead: [UInt8] = []
    var uploadedByteCount: UInt64 = 0
    /// From beginning to end.
    var elapsed = Duration.zero
    var status = ExitStatus.success
    /// What went wrong; empty for nothing.
    var message = ""

    init(_ plan: TransferPlan) {
        number = plan.number
        givenURL = plan.givenURL
        url = plan.url
        method = plan.request.method.rawValue
        referer = plan.request.headerFields[.referer]
    }
}
