import MartletCache
import MartletWire
import Synchronization

/// What an exchange was, as the wire had it. The types of the public API are made of it when they are asked for: many
/// callers look at a status and a body and at nothing else.
final class ExchangeStorage: Sendable {
    let method: HTTPRequest.Method
    private let fields: HTTPFields
    private let givenRequest: HTTPRequest?
    /// What the session's `Accept` says, where it is sent with requests that have none.
    let defaultAccept: String?
    let url: HTTPURL
    let head: ResponseHead
    let body: [UInt8]
    /// Whether the body is all that came: it was not written elsewhere, nor left unread, nor that of a HEAD, which never comes.
    let isBodyCollected: Bool
    let trailers: FieldBlock?
    let interim: [ResponseHead]
    private let measured: MetricsSource
    let source: HTTPExchange.Source
    /// Which stored body it is: the same number as long as the cache keeps that body; `nil` where it has none.
    let representation: UInt64?
    /// What the cache did; `nil` without a cache.
    let cacheStatus: CacheStatus?
    /// Whether an answer of the network is to come behind it.
    let isPreview: Bool
    /// Guards the response, which whoever asks first makes.
    private let converted = Mutex<HTTPResponse?>(nil)

    init(
        _ call: Call, head: ResponseHead, body: [UInt8], isBodyCollected: Bool = false, trailers: FieldBlock?,
        interim: [ResponseHead],
        metrics: MetricsSource, source: HTTPExchange.Source, representation: UInt64? = nil,
        cacheStatus: CacheStatus? = nil, isPreview: Bool = false
    ) {
        method = call.method
        fields = call.fields
        givenRequest = call.givenRequest
        let accept = call.settings.defaultAccept
        defaultAccept = accept == nil || call.options.omittedFields.contains(.accept) ? nil : accept
        url = call.url
        self.head = head
        self.body = body
        self.isBodyCollected = isBodyCollected
        self.trailers = trailers
        self.interim = interim
        measured = metrics
        self.source = source
        self.representation = representation
        self.cacheStatus = cacheStatus
        self.isPreview = isPreview
    }

    /// What happened, and when.
    var metrics: HTTPMetrics { measured.metrics }

    /// The request as it was asked for.
    var request: HTTPRequest {
        givenRequest ?? HTTPRequest(method: method, url: url, headerFields: fields)
    }

    /// The response, made once.
    var response: HTTPResponse {
        converted.withLock { converted in
            if let response = converted { return response }
            let response = HeadConversion.response(head)
            converted = response
            return response
        }
    }
}
