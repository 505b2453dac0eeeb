public import MartletCore

/// The setting of ``SessionConfiguration/authentication``.
enum AuthenticationSettingKey: StageKey {
    static var defaultValue: AuthenticationSettings { AuthenticationSettings() }
    static var position: StagePosition { .authentication }

    static func isActive(_ settings: AuthenticationSettings) -> Bool { !settings.isEmpty }

    static func stage(for call: Call, _ progress: CallProgress) -> (any CallStage)? {
        var settings = call[AuthenticationSettingKey.self]
        // The user name and password of a URL come before those of the session, not before those of the call.
        if let credentials = call.urlCredentials, call.options.authentication == nil {
            settings.credentials = credentials
            settings.tokens = nil
        }
        guard !settings.isEmpty || call.observer?.delegate != nil else { return nil }
        return AuthenticationStage(settings.sources, call, progress)
    }
}

extension SessionConfiguration {
    /// The credentials used to answer authentication challenges. Empty by default: a 401 is then returned as a normal response.
    public var authentication: AuthenticationSettings {
        get { self[AuthenticationSettingKey.self] }
        set { self[AuthenticationSettingKey.self] = newValue }
    }
}

extension RequestOptions {
    /// The credentials used to answer authentication challenges in this call; `nil` (the default) for those of the session.
    public var authentication: AuthenticationSettings? {
        get { self[AuthenticationSettingKey.self] }
        set { self[AuthenticationSettingKey.self] = newValue }
    }
}
