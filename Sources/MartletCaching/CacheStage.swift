import MartletCredentials
public import MartletCore
public import MartletCache
import MartletConnections
import MartletTransport

/// Answers from the cache, and stores what the network answers, as the rules of RFC 9111 decide.
///
/// ``CacheStep`` sends the requests itself, since several calls may share one transfer.
struct CacheStage: CallStage {
    let progress: CallProgress

    func answer(_ call: Call, _ next: CallNext) async throws -> Answer {
        if let answer = progress.takeFirstAnswer() { return answer }
        guard let cache = call.cache else { return try await next(call) }
        while true {
            let request = try progress.begin(call)
            var step = CacheStep(
                cache: cache, core: progress.core, dialer: progress.dialer, call: request,
                control: progress.control, ignoresStored: progress.ignoresStored,
                unwantedStatuses: progress.unwantedStatuses(call))
            do {
                let answer = try await step.answer()
                progress.answered()
                return answer
            } catch let error as HTTPError {
                if error.code == .storedBodyDamaged, progress.ignoreStored() { continue }
                let failed = step
                progress.standIn {
                    var step = failed
                    return try await step.staleAnswer()
                }
                throw progress.own(error)
            }
        }
    }
}

/// The setting of ``SessionConfiguration/cache``.
enum CacheKeySetting: StageKey {
    static var defaultValue: ResponseCache? { nil }
    static var position: StagePosition { .cache }

    static func isActive(_ cache: ResponseCache?) -> Bool { cache != nil }

    static func stage(for call: Call, _ progress: CallProgress) -> (any CallStage)? {
        call.settings.configuration.cache == nil ? nil : CacheStage(progress: progress)
    }

    /// The answer of what the cache holds in memory: the first step of ``CacheStep``.
    static func answerAtOnce(
        _ call: Call, _ core: SessionCore, _ dialer: Dialer, _ control: TransferControl
    ) -> Answer? {
        guard call.method == .get || call.method == .head, !call.body.isPresent, let cache = call.cache else {
            return nil
        }
        var step = CacheStep(
            cache: cache, core: core, dialer: dialer, call: call, control: control, ignoresStored: false)
        return step.answerAtOnce()
    }
}

/// The setting of ``SessionConfiguration/cacheMode``.
enum CacheModeKey: SettingKey { static var defaultValue: CacheMode { .standard } }

/// The setting of ``SessionConfiguration/cachePartition``.
enum CachePartitionKey: SettingKey { static var defaultValue: String? { nil } }

/// Whether a stored response may be delivered before that of the network.
enum PreviewKey: SettingKey { static var defaultValue: Bool { false } }

extension SessionConfiguration {
    /// The response cache (RFC 9111). With `nil` (the default) responses are neither stored nor served from a cache.
    ///
    /// Sessions and views may share a cache. A response that was stored with the credentials of one caller is not found with
    /// those of another.
    public var cache: ResponseCache? {
        get { self[CacheKeySetting.self] }
        set { self[CacheKeySetting.self] = newValue }
    }

    /// The use that requests make of the cache; ``CacheMode/standard`` by default.
    public var cacheMode: CacheMode {
        get { self[CacheModeKey.self] }
        set { self[CacheModeKey.self] = newValue }
    }

    /// The name of the part of the cache that requests use; with `nil` (the default) requests with different `Authorization`
    /// fields use different parts, so that no caller is served a response that was another's.
    ///
    /// In both cases, responses of a server other than the URL's, chosen by ``unixSocketPath``, ``connectRedirections`` or
    /// ``resolveOverrides``, are found only if these settings lead to the same server again.
    ///
    /// The name is written to disk, so it must not be a secret. A session that acts for many users by cookies gives each of
    /// them a view with a partition of its own.
    public var cachePartition: String? {
        get { self[CachePartitionKey.self] }
        set { self[CachePartitionKey.self] = newValue }
    }
}

extension RequestOptions {
    /// The use that the call makes of the session's cache; `nil` (the default) for the session's mode.
    public var cacheMode: CacheMode? {
        get { self[CacheModeKey.self] }
        set { self[CacheModeKey.self] = newValue }
    }

    /// The name of the part of the cache that the call uses; `nil` (the default) for the session's.
    public var cachePartition: String? {
        get { self[CachePartitionKey.self] ?? nil }
        set { self[CachePartitionKey.self] = newValue.map { .some($0) } }
    }

    /// Whether a stored response may be delivered before that of the network.
    var takesPreview: Bool {
        get { self[PreviewKey.self] ?? false }
        set { self[PreviewKey.self] = newValue ? true : nil }
    }
}
