#if Configuration
    import Configuration
    public import FoundationEssentials

    /// The error of a setting that ``SessionConfiguration/update(from:)`` cannot use.
    ///
    /// It never contains the value of the setting, which may be a secret.
    public struct InvalidSettingError: LocalizedError, Sendable, CustomStringConvertible {
        /// The key, relative to the scope of the reader: `timeouts.total`.
        public var key: String
        /// A description of the allowed values.
        public var expected: String
        /// The cause: the error of the provider, or of the file or the URL that the setting names; `nil` if the value
        /// itself is not allowed.
        public var underlying: (any Error)?

        /// Creates an error.
        public init(key: String, expected: String, underlying: (any Error)? = nil) {
            (self.key, self.expected, self.underlying) = (key, expected, underlying)
        }

        /// The key, the allowed values, and the cause.
        public var description: String {
            "the setting “\(key)” must be \(expected)" + (underlying.map { " (\($0))" } ?? "")
        }

        /// The same as ``description``.
        public var errorDescription: String? { description }
    }

    /// A reader of settings that reports every value that it cannot use. A missing setting is `nil`.
    struct SettingsReader {
        let reader: ConfigReader

        /// Returns a text. A number or a Boolean is converted, because providers other than the environment's and that
        /// of the command line have types.
        func text(_ key: String, _ expected: String, isSecret: Bool = false) async throws -> String? {
            let configKey = ConfigKey(key)
            do { return try await reader.fetchString(forKey: configKey, isSecret: isSecret) } catch {
                try Task.checkCancellation()
                if let number = try? await reader.fetchInt(forKey: configKey, isSecret: isSecret) { return "\(number)" }
                if let number = try? await reader.fetchDouble(forKey: configKey, isSecret: isSecret) {
                    return "\(number)"
                }
                if let flag = try? await reader.fetchBool(forKey: configKey, isSecret: isSecret) { return "\(flag)" }
                throw InvalidSettingError(key: key, expected: expected, underlying: error)
            }
        }

        /// Returns a list of texts. A single text is a list of one.
        func list(_ key: String, _ expected: String, isSecret: Bool = false) async throws -> [String]? {
            do { return try await reader.fetchStringArray(forKey: ConfigKey(key), isSecret: isSecret) } catch {
                return try await text(key, expected, isSecret: isSecret).map { [$0] }
            }
        }

        /// Returns a text that is converted to a value; a conversion to `nil` is an error.
        func value<Value>(_ key: String, _ expected: String, _ convert: (String) -> Value?) async throws -> Value? {
            guard let text = try await text(key, expected) else { return nil }
            guard let value = convert(text) else { throw InvalidSettingError(key: key, expected: expected) }
            return value
        }

        /// Returns the same as ``value(_:_:_:)``, or the inner `nil` for the text `none`.
        func optional<Value>(_ key: String, _ expected: String, _ convert: (String) -> Value?) async throws -> Value?? {
            try await value(key, expected + ", or “none”") { text -> Value?? in
                text == "none" ? .some(.none) : convert(text).map(Optional.some)
            }
        }

        /// Returns a Boolean, in the forms that providers of texts accept.
        func flag(_ key: String) async throws -> Bool? {
            try await value(key, "true or false") { text in
                switch text.lowercased() {
                case "true", "yes", "1": true
                case "false", "no", "0": false
                default: nil
                }
            }
        }

        /// Returns a whole number.
        func number(_ key: String, atLeast minimum: Int) async throws -> Int? {
            try await value(key, "a whole number of at least \(minimum)") { wholeNumber($0, atLeast: minimum) }
        }

        /// Returns a whole number, or the inner `nil` for the text `none`.
        func optionalNumber(_ key: String, atLeast minimum: Int) async throws -> Int?? {
            try await optional(key, "a whole number of at least \(minimum)") { wholeNumber($0, atLeast: minimum) }
        }

        /// Returns a number of seconds.
        func seconds(_ key: String) async throws -> Duration? {
            try await value(key, "a number of seconds from 0 to \(Self.maximumSeconds)") { duration($0, atLeast: 0) }
        }

        /// Returns a number of seconds, or the inner `nil` for the text `none`. Zero is not allowed: in some programs
        /// it disables a timeout, in others the timeout expires at once.
        func optionalSeconds(_ key: String) async throws -> Duration?? {
            try await optional(key, "a number of seconds from 0.001 to \(Self.maximumSeconds)") {
                duration($0, atLeast: 0.001)
            }
        }

        /// 31 years; sums of such durations do not overflow.
        private static let maximumSeconds = 1_000_000_000

        private func wholeNumber(_ text: String, atLeast minimum: Int) -> Int? {
            Int(text).flatMap { $0 < minimum ? nil : $0 }
        }

        private func duration(_ text: String, atLeast minimum: Double) -> Duration? {
            guard let seconds = Double(text), seconds >= minimum, seconds <= Double(Self.maximumSeconds) else {
                return nil
            }
            return .seconds(seconds)
        }

        /// Runs a step that uses the value of a setting, and throws its error as that of the setting.
        func using<Value>(_ key: String, _ expected: String, _ step: () async throws -> Value) async throws -> Value {
            do { return try await step() } catch {
                throw InvalidSettingError(key: key, expected: expected, underlying: error)
            }
        }

        /// Throws an error if a setting has a value although the one that it belongs to is missing.
        func require(_ key: String, for dependent: String, isSecret: Bool = false) async throws {
            guard try await text(dependent, "absent without “\(key)”", isSecret: isSecret) == nil else {
                throw InvalidSettingError(key: key, expected: "set, because “\(dependent)” is")
            }
        }
    }
#endif
