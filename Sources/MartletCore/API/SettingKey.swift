import MartletCredentials
package import MartletConnections
package import MartletTransport

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
    static func answerAtOnce(
        _ call: Call, _ core: SessionCore, _ dialer: Dialer, _ control: TransferControl
    ) -> Answer?
}

extension StageKey {
    package static func answerAtOnce(
        _ call: Call, _ core: SessionCore, _ dialer: Dialer, _ control: TransferControl
    ) -> Answer? { nil }
}

/// Something that accompanies a session from its start to its end, and may change the limits of its connections.
package protocol SessionAttachment: AnyObject, Sendable {
    /// The limits in force, given those of the settings. Called under the pool's lock.
    func limits(_ limits: PoolLimits) -> PoolLimits
    /// Called when the session goes.
    func end()
}

/// A setting that accompanies sessions. A view has what its session has.
package protocol AttachmentKey: SettingKey {
    /// Makes what accompanies a session.
    static func attachment(_ configuration: SessionConfiguration, _ core: SessionCore)
        -> any SessionAttachment
}

/// The stage that a setting adds to the pipeline.
struct StageSource: Sendable {
    let key: ObjectIdentifier
    let position: StagePosition
    /// Whether it is one of Martlet's stages, which come after those of other packages.
    let isOwn: Bool
    let isActive: @Sendable (SessionConfiguration) -> Bool
    let stage: @Sendable (Call, CallProgress) -> (any CallStage)?
    let answerAtOnce: @Sendable (Call, SessionCore, Dialer, TransferControl) -> Answer?

    private init<Key: StageKey>(_ key: Key.Type) {
        self.key = ObjectIdentifier(key)
        position = Key.position
        isOwn = true
        isActive = { Key.isActive($0[key]) }
        stage = { Key.stage(for: $0, $1) }
        answerAtOnce = { Key.answerAtOnce($0, $1, $2, $3) }
    }

    private init<Key: FeatureKey>(feature key: Key.Type) {
        self.key = ObjectIdentifier(key)
        position = Key.position
        isOwn = false
        isActive = { Key.middleware(for: $0[key]) != nil }
        stage = { call, progress in
            Key.middleware(for: call[key]).map { MiddlewareStage(middleware: $0, progress: progress) }
        }
        answerAtOnce = { _, _, _, _ in nil }
    }

    /// The stage of a key; `nil` if the key has none.
    fileprivate static func of<Key: SettingKey>(_ key: Key.Type) -> StageSource? {
        if let key = key as? any StageKey.Type { return StageSource(key) }
        if let key = key as? any FeatureKey.Type { return StageSource(feature: key) }
        return nil
    }
}

/// The settings of features, by their keys. A copy costs one reference.
struct SettingsStore: Sendable {
    private protocol Setting: AnyObject, Sendable {}

    private final class SettingOf<Value: Sendable>: Setting {
        let value: Value

        init(_ value: Value) { self.value = value }
    }

    private struct Entry {
        let key: ObjectIdentifier
        let setting: any Setting
        let source: StageSource?
        let attachment: (any AttachmentKey.Type)?
    }

    private var entries: [Entry] = []

    /// The value of a key; `nil` if it was not set.
    subscript<Key: SettingKey>(_ key: Key.Type) -> Key.Value? {
        get {
            let identifier = ObjectIdentifier(key)
            guard let entry = entries.first(where: { $0.key == identifier }) else { return nil }
            return (entry.setting as? SettingOf<Key.Value>)?.value
        }
        set {
            let identifier = ObjectIdentifier(key)
            let index = entries.firstIndex { $0.key == identifier }
            let entry = newValue.map { value in
                Entry(
                    key: identifier, setting: SettingOf(value), source: .of(key),
                    attachment: key as? any AttachmentKey.Type)
            }
            switch (index, entry) {
            case (let index?, let entry?): entries[index] = entry
            case (let index?, nil): entries.remove(at: index)
            case (nil, let entry?): entries.append(entry)
            case (nil, nil): break
            }
        }
    }

    /// Whether a setting adds a stage.
    var hasStages: Bool { entries.contains { $0.source != nil } }

    /// The stages that the settings add, in the order of the pipeline.
    var stages: [StageSource] { StageSource.ordered(entries.compactMap(\.source)) }

    /// The keys of what accompanies a session.
    var attachments: [any AttachmentKey.Type] { entries.compactMap(\.attachment) }
}

extension StageSource {
    /// Stages in the order of the pipeline.
    static func ordered(_ stages: [StageSource]) -> [StageSource] {
        stages.enumerated().sorted { ($0.element.place, $0.offset) < ($1.element.place, $1.offset) }.map(
            \.element)
    }

    private var place: Int { 2 * position.rawValue + (isOwn ? 1 : 0) }
}

extension SessionConfiguration {
    /// The value of a feature's setting: what was set, otherwise the key's default.
    public subscript<Key: SettingKey>(_ key: Key.Type) -> Key.Value {
        get { settings[key] ?? Key.defaultValue }
        set { settings[key] = newValue }
    }
}

extension RequestOptions {
    /// The value of a feature's setting for this call; `nil` (the default) for that of the session.
    public subscript<Key: SettingKey>(_ key: Key.Type) -> Key.Value? {
        get { settings?[key] }
        set { if newValue != nil || settings != nil { changeSettings { $0[key] = newValue } } }
    }
}

extension Call {
    /// The value of a feature's setting in force: that of the call, otherwise that of the session.
    package subscript<Key: SettingKey>(_ key: Key.Type) -> Key.Value {
        options[key] ?? settings.configuration[key]
    }
}
