public import MartletCache
public import MartletCore

/// The setting of ``SessionConfiguration/cacheMode``.
package enum CacheModeKey: SettingKey { package static var defaultValue: CacheMode { .standard } }

/// The setting of ``SessionConfiguration/cachePartition``.
package enum CachePartitionKey: SettingKey { package static var defaultValue: String? { nil } }

/// The setting of ``RequestOptions/usesCookies``.
package enum UsesCookiesKey: SettingKey { package static var defaultValue: Bool { true } }

/// The setting of ``RequestOptions/usesHSTS``.
package enum UsesHSTSKey: SettingKey { package static var defaultValue: Bool { true } }

extension SessionConfiguration {
    /// The use that requests make of the cache; ``CacheMode/standard`` by default.
    public var cacheMode: CacheMode {
        get { self[CacheModeKey.self] }
        set { self[CacheModeKey.self] = newValue }
    }

    /// The name of the part of the cache that requests use. With `nil` (the default), each value of `Authorization` has
    /// its own part, so that no user receives a response that was stored for another.
    ///
    /// The name is written to disk, so it must not be a secret. A session that acts for many users by cookies gives
    /// each of them a view with its own partition. Responses of another server, by ``unixSocketPath``,
    /// ``connectOverrides`` or ``resolveOverrides``, are found only with the same setting.
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

    /// The name of the part of the cache that the call uses; `nil` (the default) for the session's partition.
    public var cachePartition: String? {
        get { self[CachePartitionKey.self] ?? nil }
        set { self[CachePartitionKey.self] = newValue.map { .some($0) } }
    }

    /// Whether the session's cookies are sent, and those of the response stored; `nil` means yes.
    public var usesCookies: Bool? {
        get { self[UsesCookiesKey.self] }
        set { self[UsesCookiesKey.self] = newValue }
    }

    /// Whether the session's HSTS store applies: to the call's URLs, and to the fields of its responses; `nil` means
    /// yes.
    public var usesHSTS: Bool? {
        get { self[UsesHSTSKey.self] }
        set { self[UsesHSTSKey.self] = newValue }
    }
}
