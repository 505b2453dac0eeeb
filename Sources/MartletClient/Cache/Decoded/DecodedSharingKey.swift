import MartletCache

/// By what two requests are known to be the same: those whose keys are equal may have one answer.
///
/// Whatever could make a difference is in it: to what comes, to when it comes, and to whom it is shown. Closures cannot be
/// compared: requests whose options have one are never the same as another.
struct DecodedSharingKey: Hashable, Sendable {
    private let resource: DecodedResource
    private let timeouts: Timeouts?
    private let priority: RequestPriority?
    private let order: WaitingOrder?
    private let bodyLimit: ByteCount?
    private let version: HTTPVersion
    private let trailers: HTTPFields
    private let redirects: RedirectPolicy?
    private let retry: RetryPolicy?
    private let credentials: Credentials?
    private let attemptLimit: Int?
    private let usesCookies: Bool
    private let idempotencyKey: IdempotencyKey?
    private let bandwidth: BandwidthLimit
    /// The number of the calls that are under one limit with it.
    private let bandwidthGroup: UInt64?
    private let cacheMode: CacheMode?
    private let cachePartition: String?
    private let allowsResendingUnsafeMethods: Bool

    /// The key of a request; `nil` for one that shares with none: its method is not one that only looks (RFC 9110 §9.2.1),
    /// or its options hold a closure, or what else cannot be compared.
    init?(_ resource: DecodedResource, options: RequestOptions) {
        guard resource.request.method == .get || resource.request.method == .head,
            options.validator == nil, options.proxy == nil
        else { return nil }
        if let settings = options.authentication {
            guard settings.handler == nil, settings.tokens == nil, settings.netrc == nil,
                settings.credentialsByOrigin.isEmpty
            else { return nil }
        }
        self.resource = resource
        timeouts = options.timeouts
        priority = options.priority
        order = options.order
        bodyLimit = options.bodyLimit
        version = options.version
        trailers = options.trailers
        redirects = options.redirects
        retry = options.retry
        credentials = options.authentication?.credentials
        // Also tells apart settings that are empty, which refuse the session's, and none.
        attemptLimit = options.authentication?.attemptLimit
        usesCookies = options.usesCookies
        idempotencyKey = options.idempotencyKey
        bandwidth = options.bandwidth
        bandwidthGroup = options.bandwidthGroup?.number
        cacheMode = options.cacheMode
        cachePartition = options.cachePartition
        allowsResendingUnsafeMethods = options.allowsResendingUnsafeMethods
    }
}
