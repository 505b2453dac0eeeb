/// A setting that a feature adds to ``SessionConfiguration`` and ``RequestOptions``.
///
/// A feature declares a key and an extension that reads and writes it, like the environment values of SwiftUI:
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
/// A feature that takes part in calls makes its key conform to ``FeatureKey``.
public protocol SettingKey: SendableMetatype {
    /// The type of the setting.
    associatedtype Value: Sendable
    /// The value for configurations that do not set the setting.
    static var defaultValue: Value { get }
}

/// The position of a feature's stage in the pipeline of a call.
///
/// Each request of a redirect or a retry passes all of these positions again. Features at the same position run in the
/// order in which their settings were first assigned, before Martlet's own stage at that position.
public enum StagePosition: Int, Sendable, Comparable {
    /// After ``SessionConfiguration/middleware``, before credentials and cookies are added. A request that is repeated
    /// with credentials does not pass the stage again.
    case request
    /// Before credentials are added and challenges are handled.
    case authentication
    /// Before cookies are added and stored. A request that is repeated with credentials passes the stage again.
    case cookies
    /// The last position, before the cache and ``SessionConfiguration/networkMiddleware``. Responses from the cache
    /// also pass a stage here. The stage receives the request without credentials and cookies.
    case cache

    /// Whether one position comes before another.
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
    /// The position of the feature's stage; ``StagePosition/request`` by default.
    static var position: StagePosition { get }
    /// Returns the stage for one call; `nil` if the call does not use the feature, which then costs nothing.
    static func middleware(for value: Value) -> (any HTTPMiddleware)?
}

extension FeatureKey {
    /// The position before credentials and cookies are added.
    public static var position: StagePosition { .request }
}

/// A setting with a stage that works on the core's own types of request and response, not on those of middleware.
package protocol StageKey: SettingKey {
    /// The position of the stage.
    static var position: StagePosition { get }
    /// Whether a session with this value needs the stage for calls that do not set the value.
    static func isActive(_ value: Value) -> Bool
    /// Returns the stage for one call; `nil` if it is not needed.
    static func stage(for call: Call, _ progress: CallProgress) -> (any CallStage)?
    /// Returns a function that replaces the URLs of calls before anything is derived from them; `nil` without one.
    static func urlReplacement(_ value: Value) -> (@Sendable (HTTPURL, RequestOptions) -> HTTPURL)?
    /// Returns the response to a call that needs no other stage; `nil` if it is not available without waiting.
    static func immediateResponse(_ call: Call, _ core: SessionCore, _ dialer: Dialer, _ control: TransferControl)
        -> StreamedResponse?
}

extension StageKey {
    package static func urlReplacement(_ value: Value) -> (@Sendable (HTTPURL, RequestOptions) -> HTTPURL)? { nil }
    package static func immediateResponse(
        _ call: Call, _ core: SessionCore, _ dialer: Dialer, _ control: TransferControl
    ) -> StreamedResponse? { nil }
}

/// An object that accompanies a session from its start to its end, and may change the limits of its connections.
package protocol SessionAttachment: AnyObject, Sendable {
    /// Returns the limits in force. Called with the limits of the settings, under the pool's lock.
    func limits(_ limits: PoolLimits) -> PoolLimits
    /// Ends the attachment; called when the session is released.
    func end()
}

/// A setting that adds an attachment to sessions. Views share the attachment of their session.
package protocol AttachmentKey: SettingKey {
    /// Creates the attachment of a session.
    static func attachment(_ configuration: SessionConfiguration, _ core: SessionCore) -> any SessionAttachment
}

extension SessionConfiguration {
    /// The value of a feature's setting; the key's default if it was not set.
    public subscript<Key: SettingKey>(_ key: Key.Type) -> Key.Value {
        get { settings[key] ?? Key.defaultValue }
        set { settings[key] = newValue }
    }

    /// Whether a setting of Martlet adds a stage at a position.
    package func hasStages(at position: StagePosition) -> Bool {
        settings.stages.contains { $0.isOwn(at: position) && $0.isActive(self) }
    }

    /// Removes Martlet's settings that add a stage at a position.
    package mutating func removeStages(at position: StagePosition) { settings.removeStages(at: position) }
}

extension RequestOptions {
    /// The value of a feature's setting for this call; `nil` (the default) to use the session's value.
    public subscript<Key: SettingKey>(_ key: Key.Type) -> Key.Value? {
        get { settings[key] }
        set { if newValue != nil || settings[key] != nil { settings[key] = newValue } }
    }
}

extension Call {
    /// The value of a feature's setting in force: the call's value, otherwise the session's.
    package subscript<Key: SettingKey>(_ key: Key.Type) -> Key.Value { options[key] ?? settings[key] }
}
