public import MartletCore
public import MartletCookies

/// A stage that sends the cookies of a jar, and stores the cookies that responses set.
package struct CookieStage: CallStage {
    let jar: CookieJar
    let progress: CallProgress

    package func answer(_ call: Call, _ next: CallNext) async throws -> StreamedResponse {
        var request = call
        if !jar.isEmpty {
            let url = call.url
            let cookies = try await reading(.preparing) { await jar.headerBytes(for: url) }
            request = call.supplemented { $0.cookies = cookies }
        }
        let answer = try await next(request)
        do { try await store(answer) } catch {
            answer.finish()
            throw error
        }
        return answer
    }

    private func store(_ answer: StreamedResponse) async throws {
        // A 407 comes from the forwarding proxy, not from the origin, so its cookies are not the origin's.
        if answer.head.status == 407, answer.call.isForwarded { return }
        // The cookies of a cached response were stored when it was received; a validation may set others.
        let values = answer.source == .network ? answer.setCookies : answer.provenance?.setCookies ?? []
        guard !values.isEmpty else { return }
        let url = answer.call.url
        try await reading(.processingResponse, holding: answer.channel.heldExchange) {
            _ = await jar.store(setCookieBytes: values, from: url)
        }
    }

    /// Runs a closure that needs the jar's file and its public suffixes, which may be user code.
    private func reading<Value: Sendable>(
        _ phase: HTTPError.Phase, holding exchange: Exchange? = nil, _ body: @escaping @Sendable () async -> Value
    ) async throws -> Value {
        if jar.isReady { return await body() }
        return try await progress.userCode.run(
            "the cookie jar's public suffixes and file", phase, holding: exchange, sentCount: progress.sentCount, body)
    }
}

extension StreamedResponse {
    /// The values of the response's `Set-Cookie` fields.
    package var setCookies: [[UInt8]] { head.fields.rawValues(of: "set-cookie").map { Array($0) } }
}

/// The setting of ``SessionConfiguration/cookies``.
enum CookiesKey: StageKey {
    static var defaultValue: CookieJar? { nil }
    static var position: StagePosition { .cookies }

    static func isActive(_ jar: CookieJar?) -> Bool { jar != nil }

    static func stage(for call: Call, _ progress: CallProgress) -> (any CallStage)? {
        call.cookieJar.map { CookieStage(jar: $0, progress: progress) }
    }
}

extension SessionConfiguration {
    /// The cookie jar. With `nil` (the default) cookies are neither sent nor stored.
    ///
    /// A session that acts for many users needs a view with its own jar for each of them.
    public var cookies: CookieJar? {
        get { self[CookiesKey.self] }
        set { self[CookiesKey.self] = newValue }
    }
}

extension Call {
    /// The effective cookie jar; `nil` if the call uses none.
    package var cookieJar: CookieJar? { options.usesCookies == false ? nil : settings[CookiesKey.self] }
}
