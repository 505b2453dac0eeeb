package import MartletCore

/// Decides on a request after a response or a failure.
///
/// | response | with a key | idempotent | neither |
/// |---|---|---|---|
/// | 2xx, 304 | delivered | delivered | delivered |
/// | 401 | credentials, once | the same | the same |
/// | 407, 408, 421, 425, 429, 503, 507, 511; 413 with `Retry-After` | later | later | later: it was not processed |
/// | 409 | later, with the same key | dead | dead |
/// | 500, 502, 504, other 5xx | later | later | uncertain |
/// | 501, 505, other 3xx and 4xx | dead | dead | dead |
/// | none, nothing sent | later | later | later |
/// | none, something sent | later | later | uncertain |
/// | 2xx, 304, after a redirect that changed the method, unless it is accepted | dead | dead | uncertain |
/// | other than 2xx and 304, after a 303 or a redirect that changed the method | as above | as above | uncertain |
struct ReplayRule: Sendable {
    /// Whether the request has an `Idempotency-Key`.
    private let hasKey: Bool
    /// Whether it may be sent twice.
    private let isRepeatable: Bool
    private let secrets: SecretFields
    /// Whether a 303, or a 302 within an origin, that changed the method leads to the result of the request.
    private let acceptsRedirectedResults: Bool

    private static let notProcessed: Set<Int> = [407, 408, 421, 425, 429, 503, 507, 511]
    private static let neverSupported: Set<Int> = [501, 505]

    init(_ request: QueuedRequest, secrets: SecretFields, acceptsRedirectedResults: Bool = false) {
        hasKey = request.idempotencyKey != nil
        (isRepeatable, self.secrets) = (request.isRepeatable, secrets)
        self.acceptsRedirectedResults = acceptsRedirectedResults
    }

    /// Returns the decision after a response.
    /// - Parameter now: Seconds since 1970.
    func decision(on answer: HTTPExchange, now: Int64) -> ReplayDecision {
        let status = answer.statusCode
        let words = "the server responded with status \(status)"
        switch status {
        case 200...299 where isStray(answer), 304 where isStray(answer):
            let what = "\(words) to the request after a redirect, which does not show that this one was accepted"
            return isRepeatable ? .dead(letter(.refused, what, answer), answer) : unclear(what, answer)
        case 200...299, 304: return .delivered(answer)
        case _ where !isRepeatable && ReplayRule.isOfAnother(answer):
            return unclear("\(words) after a redirect, which does not show whether the request took effect", answer)
        case 401: return .unauthorized(answer)
        case _ where ReplayRule.notProcessed.contains(status), 409 where hasKey,
            413 where answer.response.headerFields[.retryAfter] != nil:
            return later(answer, words, now)
        case 500...599 where !ReplayRule.neverSupported.contains(status):
            if isRepeatable { return later(answer, words, now) }
            return unclear("\(words), which does not show whether the request took effect", answer)
        default: return .dead(letter(.refused, words, answer), answer)
        }
    }

    /// Whether the response is to another request. The server has then processed this one, and responded with a 303 or
    /// with a redirect that changed the method (RFC 9110 §15.4).
    private static func isOfAnother(_ answer: HTTPExchange) -> Bool {
        redirects(of: answer).contains { hop, method, _ in
            !hop.method.isIdempotent && (hop.status == 303 || hop.method != method)
        }
    }

    /// Whether the response belongs to a request of another method, to which a redirect led, such as that of a sign-in
    /// page. A 303, and a 302 within an origin, may also lead to the result (RFC 9110 §15.4.3, §15.4.4), which the
    /// caller can accept. A 301 (§15.4.2) and a 302 to another origin never do.
    private func isStray(_ answer: HTTPExchange) -> Bool {
        ReplayRule.redirects(of: answer).contains { hop, method, origin in
            guard hop.method != method else { return false }
            guard acceptsRedirectedResults else { return true }
            return hop.status == 301 || hop.status == 302 && hop.url.origin != origin
        }
    }

    /// Returns the followed redirects, each with the method and the origin of the request that it led to.
    private static func redirects(of answer: HTTPExchange) -> [(
        hop: HTTPHop, method: HTTPRequest.Method, origin: HTTPURL.Origin
    )] {
        let hops = answer.metrics.hops
        let followers =
            hops.dropFirst().map { ($0.method, $0.url.origin) } + [(answer.request.method, answer.url.origin)]
        return zip(hops, followers).compactMap { hop, follower in
            hop.reason == .redirect ? (hop, follower.0, follower.1) : nil
        }
    }

    private func later(_ answer: HTTPExchange, _ words: String, _ now: Int64) -> ReplayDecision {
        let value = answer.response.headerFields[.retryAfter]
        let delay = value.flatMap { RetryAfter(Array($0.utf8), now: now)?.delay }
        return .later(.refused, atLeast: delay, message: words)
    }

    private func unclear(_ message: String, _ answer: HTTPExchange) -> ReplayDecision {
        .uncertain(letter(.noResponse, message, answer), .answer(answer))
    }

    private func letter(_ reason: OfflineDeadLetter.Reason, _ message: String, _ answer: HTTPExchange)
        -> OfflineDeadLetter
    {
        OfflineDeadLetter(
            reason, message: message, statusCode: answer.statusCode,
            fields: OfflineDeadLetter.bounded(secrets.stripped(from: answer.response.headerFields).kept),
            body: Array(answer.body.prefix(OfflineDeadLetter.bodyLimit)))
    }

    /// Returns the decision after a failure. If the head of a response has arrived, its status decides.
    func decision(on error: any Error, now: Int64) -> ReplayDecision {
        guard let error = error as? HTTPError else {
            // Only the error's type: the message is stored, and its text may contain a secret.
            return withoutResponse(error, "the request failed with \(type(of: error))", wasSent: true)
        }
        let isRedirectError = error.code == .tooManyRedirects || error.code == .redirectRejected
        if let answer = error.exchange, error.wasSent, !isRedirectError { return decision(on: answer, now: now) }
        switch error.code {
        case .invalidURL, .invalidRequest, .invalidHeader, .bodyNotReplayable, .bodyLengthMismatch, .tooManyRedirects,
            .redirectRejected:
            guard let answer = error.exchange else {
                return .dead(OfflineDeadLetter(.unsendable, message: error.description))
            }
            return .dead(letter(.refused, error.description, answer), answer)
        case .bodySourceFailed, .fileFailed, .diskFull:
            guard isRepeatable || !error.wasSent else { fallthrough }
            return .later(.storage, atLeast: nil, message: error.description)
        default: return withoutResponse(error, error.description, wasSent: error.wasSent)
        }
    }

    private func withoutResponse(_ error: any Error, _ message: String, wasSent: Bool) -> ReplayDecision {
        if isRepeatable || !wasSent { return .later(.unreachable, atLeast: nil, message: message) }
        return .uncertain(OfflineDeadLetter(.noResponse, message: message), .failure(error))
    }
}

/// The decision after an attempt to send a request.
package enum ReplayDecision: Sendable {
    /// The server accepted the request.
    case delivered(HTTPExchange)
    /// The request is retried after at least that time.
    case later(OfflinePostponement.Reason, atLeast: Duration?, message: String)
    /// The server requires credentials.
    case unauthorized(HTTPExchange)
    /// The request would fail again.
    case dead(OfflineDeadLetter, HTTPExchange? = nil)
    /// Sending the request again might repeat its effect.
    case uncertain(OfflineDeadLetter, Uncertainty)

    package enum Uncertainty: Sendable {
        /// A response that does not show whether the request took effect.
        case answer(HTTPExchange)
        /// The error of a request without a response.
        case failure(any Error)
    }
}
