public import MartletCore
import MartletCache
import MartletFeatureSettings

/// The stage that serves responses from the cache and stores those of the network (RFC 9111; ``CacheHandler``).
struct CacheStage: CallStage {
    let progress: CallProgress

    func answer(_ call: Call, _ next: CallNext) async throws -> StreamedResponse {
        if let answer = progress.takeFirstResponse() { return answer }
        guard let cache = call.cache, !(cache.isTransient && call.cacheRequest().isOffline) else {
            return try await next(call)
        }
        while true {
            var step = CacheHandler(
                cache, core: progress.core, dialer: progress.dialer, call: try progress.begin(call),
                control: progress.control, ignoresStored: progress.ignoresStored,
                unwantedStatuses: progress.unwantedStatuses(call))
            do {
                let answer = try await step.answer()
                progress.answered()
                return answer
            } catch let error as HTTPError {
                if error.code == .cachedBodyCorrupted, progress.ignoreStored() { continue }
                let failed = step
                progress.staleFallback {
                    var step = failed
                    return try await step.staleFallback()?()
                }
                throw progress.own(error)
            }
        }
    }
}

/// The setting of ``SessionConfiguration/cache``.
enum CacheKeySetting: StageKey {
    static var defaultValue: ResponseCache? { nil }

    static func stage(for call: Call, _ progress: CallProgress) -> (any CallStage)? {
        call.settings[CacheKeySetting.self].map { _ in CacheStage(progress: progress) }
    }

    /// Returns the response from memory: the first step of ``CacheHandler``.
    static func immediateResponse(_ call: Call, _ core: SessionCore, _ dialer: Dialer, _ control: TransferControl)
        -> StreamedResponse?
    {
        guard call.isLookedUp, let cache = call.cache else { return nil }
        var step = CacheHandler(cache, core: core, dialer: dialer, call: call, control: control)
        return step.immediateResponse()
    }
}

/// The setting of ``SessionConfiguration/sharesTransfers``: a cache that stores nothing, if there is no other cache.
enum TransferSharingKey: StageKey {
    static var defaultValue: ResponseCache? { nil }

    static func stage(for call: Call, _ progress: CallProgress) -> (any CallStage)? {
        let settings = call.settings
        guard settings[CacheKeySetting.self] == nil, settings[TransferSharingKey.self] != nil else { return nil }
        return CacheStage(progress: progress)
    }
}

extension StageKey where Value == ResponseCache? {
    static var position: StagePosition { .cache }

    static func isActive(_ cache: ResponseCache?) -> Bool { cache != nil }
}

/// Whether a stored response may be delivered before that of the network.
enum PreviewKey: SettingKey { static var defaultValue: Bool { false } }

extension SessionConfiguration {
    /// The response cache (RFC 9111); `nil` (the default) for none. Sessions may share one: a response that was stored
    /// with one user's credentials is not served with others.
    public var cache: ResponseCache? {
        get { self[CacheKeySetting.self] }
        set { self[CacheKeySetting.self] = newValue }
    }

    /// Whether equal GET requests that run at the same time share one transfer in a session without a ``cache``;
    /// `false` by default. With a cache they always do.
    ///
    /// Requests are equal if their URL, credentials, fields (without those of a tracer), timeouts, priority, bandwidth
    /// limit and route are equal. Each call has its own total timeout, progress and cancellation. The transfer ends with
    /// the last call, and all calls throw its error. The rules are those of a cache (RFC 9111 §4): a response with
    /// `no-store`, `no-cache` or `max-age=0` is only for the first call. The other calls send their own requests, and for
    /// a minute, no call waits for a shared response. A reader that is 1 MiB behind for a second fails with the code
    /// `.cachedBodyCorrupted`.
    public var sharesTransfers: Bool {
        get { self[TransferSharingKey.self] != nil }
        set {
            if newValue != sharesTransfers {
                self[TransferSharingKey.self] = newValue ? ResponseCache.transient() : nil
            }
        }
    }
}

extension RequestOptions {
    /// Whether a stored response may be delivered before that of the network.
    var takesPreview: Bool {
        get { self[PreviewKey.self] ?? false }
        set { self[PreviewKey.self] = newValue ? true : nil }
    }
}

extension StreamedResponse {
    /// Whether the server's certificate was not verified for the host of the URL. Such a response is only for its call:
    /// it changes nothing that is stored, because calls that verify the server would be served the result.
    func isFromUnverifiedServer(_ dialer: Dialer) -> Bool {
        // HTTPS requests are never forwarded, so a TLS connection is that of the server.
        guard call.url.scheme == .https else { return false }
        return !dialer.settings.tls.settings(for: call.url.host).verifiesServers
            || channel.heldExchange?.connection.stream.information.tls?.acceptedError != nil
    }
}

extension Call {
    /// The effective cache; `nil` without a cache, or for a raw body, an ignored content length, an upgrade, or the
    /// target `*`.
    var cache: ResponseCache? {
        guard let cache = settings[CacheKeySetting.self] ?? settings[TransferSharingKey.self],
            options.returnsRawBody != true, options.ignoresContentLength != true, !options.acceptsUpgrade
        else { return nil }
        return givenRequest.map { Call.isAsteriskForm($0) } ?? false ? nil : cache
    }

    /// Whether its response may come from the cache: GET and HEAD without a body.
    var isLookedUp: Bool { (method == .get || method == .head) && !body.isPresent }

    /// Returns the call with fields that the cache adds to its request.
    func asking(_ fields: FieldBlock) -> Call { fields.isEmpty ? self : supplemented { $0.cacheFields = fields } }

    /// Returns the properties of the request that the cache needs.
    func cacheRequest() -> CacheRequest {
        let fields = sentFields
        let caller = (supplement?.identity ?? Call.credential(in: fields)).map {
            "credential-" + ResponseCache.keyedDigest($0)
        }
        var partition = [self[CachePartitionKey.self] ?? caller ?? ""].filter { !$0.isEmpty }
        let server = otherServer
        // The rule on credentials (RFC 9111 §3.5) only applies without a partition; the server must not disable it.
        if partition.isEmpty, !server.isEmpty, let caller { partition = [caller] }
        partition += server
        let wanted = settings[CacheKeySetting.self] == nil ? .standard : self[CacheModeKey.self]
        let mode: CacheMode =
            switch wanted {
            case .cacheThenNetwork where !options.takesPreview: .standard
            case .cacheThenRevalidate where !options.takesPreview: .revalidate
            default: wanted
            }
        return CacheRequest(
            method: method.rawValue, key: CacheKey(url: url.absoluteForm, partition: partition.joined(separator: " ")),
            fields: fields, mode: mode, keyedDigest: ResponseCache.keyedDigest)
    }

    /// The properties that distinguish the resource from that of the URL; mostly none.
    private var otherServer: [String] {
        // The caller's own Host field, or another server than that of the URL, gives another resource.
        let host = fields[.hostField].flatMap { $0.lowercased() == url.hostFieldValue.lowercased() ? nil : $0 }
        let target = settings.configuration.overriddenTarget(of: url)
        return [("host-", host), ("place-", target)].compactMap { kind, name in
            name.map { kind + ResponseCache.keyedDigest($0) }
        }
    }

    /// Returns the credentials of a request, with each byte as a character.
    private static func credential(in fields: FieldBlock) -> String? {
        let lines = fields.rawValues(of: "Authorization")
        return lines.isEmpty ? nil : lines.map { ByteText.latin1($0) }.joined(separator: "\n")
    }
}
