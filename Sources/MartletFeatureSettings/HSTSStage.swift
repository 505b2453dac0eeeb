public import MartletCore
public import MartletHSTS

/// A stage that stores the `Strict-Transport-Security` fields of responses. The URLs are changed earlier: see
/// ``HSTSKey/urlReplacement(_:)``.
private struct HSTSStage: CallStage {
    let store: HSTSStore

    func answer(_ call: Call, _ next: CallNext) async throws -> StreamedResponse {
        let answer = try await next(call)
        // The fields of a cached response are old; those of the response that validated it are not.
        let received = answer.source == .network ? answer : answer.provenance?.transfer
        if let received, let value = received.head.fields.rawValues(of: "strict-transport-security").first,
            received.isFromVerifiedServer
        {
            store.store(value, from: received.call.url)
        }
        return answer
    }
}

extension StreamedResponse {
    /// Whether the server's certificate was verified for the host of the URL, without an exception (RFC 6797 §8.1).
    fileprivate var isFromVerifiedServer: Bool {
        // The TLS connection of a forwarded request is that of the proxy.
        guard call.url.scheme == .https, !call.isForwarded,
            let tls = channel.heldExchange?.connection.stream.information.tls, tls.acceptedError == nil
        else { return false }
        return call.settings.configuration.tls.settings(for: call.url.host).verifiesServers
    }
}

/// The setting of ``SessionConfiguration/hsts``.
private enum HSTSKey: StageKey {
    static var defaultValue: HSTSStore? { nil }
    // Each request passes the stage, also one that is repeated with credentials.
    static var position: StagePosition { .cookies }

    static func isActive(_ store: HSTSStore?) -> Bool { store != nil }

    static func urlReplacement(_ store: HSTSStore?) -> (@Sendable (HTTPURL, RequestOptions) -> HTTPURL)? {
        guard let store else { return nil }
        return { url, options in options.usesHSTS == false ? url : store.upgraded(url) }
    }

    static func stage(for call: Call, _ progress: CallProgress) -> (any CallStage)? {
        call.options.usesHSTS == false ? nil : call.settings[HSTSKey.self].map { HSTSStage(store: $0) }
    }
}

extension SessionConfiguration {
    /// The HSTS store. With `nil` (the default) URLs are requested as they are.
    ///
    /// A call without HSTS sets ``RequestOptions/usesHSTS`` to `false`, and a view without it this setting to `nil`.
    public var hsts: HSTSStore? {
        get { self[HSTSKey.self] }
        set { self[HSTSKey.self] = newValue }
    }
}
