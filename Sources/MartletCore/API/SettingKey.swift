/// A setting that a feature adds to ``SessionConfiguration`` and ``RequestOptions``.
///
/// A feature declares a key and an extension that reads and writes it, as the values of SwiftUI's environment are declared:
///
/// ```swift
/// enum TenantKey: SettingKey {
///     static var defaultValue: String? { nil }
/// }
///
/// extension SessionConfiguration {
///     public var tenant: String? {
///         get { self[TenantKey.self] }
///         set { self[TenantKey.self] = newValue }
///     }
/// }
/// ```
///
/// A feature that takes part in calls conforms its key to ``FeatureKey``.
public protocol SettingKey: SendableMetatype {
    /// The type of the setting.
    associatedtype Value: Sendable
    /// The value of a configuration in which the setting was not set.
    static var defaultValue: Value { get }
}

/// The place of a feature's stage in the pipeline of a call.
///
/// Redirects and retries come before all of these places, so that each request they cause passes the stage again. Features
/// at the same place run in the order in which their settings were first set, and before Martlet's own stage at that place.
public enum StagePosition: Int, Sendable, Comparable {
    /// After ``SessionConfiguration/middleware``, before credentials and cookies are added: a redirect or a retry passes the
    /// stage again, a request that is repeated with credentials does not.
    case request
    /// Before credentials are added and challenges are answered.
    case authentication
    /// Before cookies are added and stored: a request that is repeated with credentials passes the stage again.
    case cookies
    /// The last place, before the cache, or before the network in sessions without one. Responses from the cache pass a stage
    /// here as well. The credentials and cookies are not among the fields it sees.
    case cache

    /// Whether one place comes before another.
    public static func < (one: StagePosition, other: StagePosition) -> Bool { one.rawValue < other.rawValue }
}

/// A setting whose feature takes part in calls.
///
/// ```swift
/// extension TenantKey: FeatureKey {
///     static func middleware(for tenant: String?) -> (any HTTPMiddleware)? {
///         tenant.map { AddTenant(name: $0) }
///     }
/// }
/// ```
///
/// The value is that of the call's ``RequestOptions`` if it was set there, otherwise that of the session.
public protocol FeatureKey: SettingKey {
    /// The place of the feature's stage; ``StagePosition/request`` by default.
    static var position: StagePosition { get }
    /// The stage for one call; `nil` if the feature has nothing to do in it, which then costs nothing.
    static func middleware(for value: Value) -> (any HTTPMiddleware)?
}

extension FeatureKey {
    /// The place before credentials and cookies are added.
    public static var position: StagePosition { .request }
}

/// A setting with a stage that works on calls as the core has them, without a copy for a middleware.
package protocol StageKey: SettingKey {
    /// The place of the stage.
    static var position: StagePosition { get }
    /// Whether a session with this value needs the stage for calls that set nothing themselves.
    static func isActive(_ value: Value) -> Bool
    /// The stage for one call; `nil` if it has nothing to do.
    static func stage(for call: Call, _ progress: CallProgress) -> (any CallStage)?
    /// The answer to a call that needs no other stage, if there is one without waiting.
    static func answerAtOnce(_ call: Call, _ core: SessionCore, _ dialer: Dialer, _ control: TransferControl)
        -> StreamedResponse?
}

extension StageKey {
    package static func answerAtOnce(_ call: Call, _ core: SessionCore, _ dialer: Dialer, _ control: TransferControl)
        -> StreamedResponse?
    { nil }
}

/// An object that accompanies a session from its start to its end, and may change the limits of its connections.
package protocol SessionAttachment: AnyObject, Sendable {
    /// The limits in force, given those of the settings. Called under the pool's lock.
    func limits(_ limits: PoolLimits) -> PoolLimits
    /// Called when the session is released.
    func end()
}

/// A setting that adds an attachment to sessions. Views share that of their session.
package protocol AttachmentKey: SettingKey {
    /// Makes the attachment of a session.
    static func attachment(_ configuration: SessionConfiguration, _ core: SessionCore) -> any SessionAttachment
}

extension SessionConfiguration {
    /// The value of a feature's setting; the key's default if it was not set.
    public subscript<Key: SettingKey>(_ key: Key.Type) -> Key.Value {
        get { settings[key] ?? Key.defaultValue }
        set { settings[key] = newValue }
    }
}

extension RequestOptions {
    /// The value of a feature's setting for this call; `nil` (the default) for that of the session.
    public subscript<Key: SettingKey>(_ key: Key.Type) -> Key.Value? {
        get { settings[key] }
        set { if newValue != nil || settings[key] != nil { settings[key] = newValue } }
    }
}

extension Call {
    /// The value of a feature's setting in force: that of the call, otherwise that of the session.
    package subscript<Key: SettingKey>(_ key: Key.Type) -> Key.Value { options[key] ?? settings.configuration[key] }
}
