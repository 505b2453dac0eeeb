#if Configuration
    public import Configuration
    import MartletCaching
    public import MartletCore

    extension SessionConfiguration {
        /// Creates a configuration from settings, with the values of ``default`` for those that are missing;
        /// see ``update(from:)``.
        ///
        /// ```swift
        /// let settings = ConfigReader(provider: EnvironmentVariablesProvider()).scoped(to: "http")
        /// let session = HTTPSession(configuration: try await SessionConfiguration(reading: settings))
        /// ```
        /// - Throws: ``InvalidSettingError``; `CancellationError`.
        public init(reading reader: ConfigReader) async throws {
            self = .default
            try await update(from: reader)
        }

        /// Replaces the settings that a reader of swift-configuration has values for, with the package trait
        /// `Configuration`. Other keys are ignored.
        ///
        /// <doc:ServerSettings> lists the keys and their values.
        ///
        /// A number may also be a text. A provider of environment variables splits lists at commas. Values are fetched
        /// once, and files are read on a worker thread. After an error the configuration is unchanged.
        /// - Throws: ``InvalidSettingError`` for a value of a wrong type or out of range, for a file that cannot be
        ///   used, and if the provider fails; `CancellationError`.
        public mutating func update(from reader: ConfigReader) async throws {
            var updated = self
            let settings = SettingsReader(reader: reader)
            try await updated.readDurations(settings)
            try await updated.readNumbers(settings)
            try await updated.readFields(settings)
            try await updated.readPolicies(settings)
            try await updated.readProxy(settings)
            try await updated.readTLS(settings)
            try await updated.readCache(settings)
            self = updated
        }

        private typealias Place<Value> = WritableKeyPath<SessionConfiguration, Value>

        private mutating func readDurations(_ settings: SettingsReader) async throws {
            let optional: [(String, Place<Duration?>)] = [
                ("timeouts.total", \.timeouts.total), ("timeouts.connect", \.timeouts.connect),
                ("timeouts.head", \.timeouts.head), ("timeouts.idle", \.timeouts.idle),
                ("timeouts.poolWait", \.timeouts.poolWait), ("timeouts.unread", \.timeouts.unread),
                ("pool.maximumAge", \.pool.maximumAge),
            ]
            for (key, place) in optional {
                if let value = try await settings.optionalSeconds(key) { self[keyPath: place] = value }
            }
            let required: [(String, Place<Duration>)] = [
                ("continueTimeout", \.continueTimeout), ("requestInterval", \.requestInterval),
                ("pool.idleLifetime", \.pool.idleLifetime),
            ]
            for (key, place) in required {
                if let value = try await settings.seconds(key) { self[keyPath: place] = value }
            }
        }

        private mutating func readNumbers(_ settings: SettingsReader) async throws {
            let numbers: [(String, minimum: Int, Place<Int>)] = [
                ("pool.connectionsPerHost", 1, \.pool.connectionsPerHost),
                ("pool.totalConnections", 1, \.pool.totalConnections),
                ("pool.idleConnectionsPerHost", 0, \.pool.idleConnectionsPerHost),
                ("pool.idleConnections", 0, \.pool.idleConnections),
                ("bufferedBodyLimit", 0, \.bufferedBodyLimit.bytes),
            ]
            for (key, minimum, place) in numbers {
                if let value = try await settings.number(key, atLeast: minimum) { self[keyPath: place] = value }
            }
            if let value = try await settings.optionalNumber("pool.maximumUses", atLeast: 1) {
                pool.maximumUses = value
            }
            let rates: [(String, Place<BandwidthRate?>)] = [
                ("bandwidth.total.upload", \.bandwidth.total.upload),
                ("bandwidth.total.download", \.bandwidth.total.download),
                ("bandwidth.perHost.upload", \.bandwidth.perHost.upload),
                ("bandwidth.perHost.download", \.bandwidth.perHost.download),
            ]
            for (key, place) in rates {
                guard let rate = try await settings.optionalNumber(key, atLeast: 1) else { continue }
                self[keyPath: place] = rate.map { .bytesPerSecond($0) }
            }
        }

        private mutating func readFields(_ settings: SettingsReader) async throws {
            let expected = "the value of a header field"
            if let value = try await settings.text("userAgent", expected) {
                if let error = HTTPHeaders(["User-Agent": value]).error {
                    throw InvalidSettingError(key: "userAgent", expected: expected, underlying: error)
                }
                userAgent = value.isEmpty ? nil : value
            }
            let form = "a list of header fields, each in the form “Name: value”"
            for field in try await settings.list("headers", form, isSecret: true) ?? [] {
                let parts = field.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                var given = HTTPHeaders()
                if parts.count == 2 { given[String(parts[0])] = String(parts[1].drop { $0 == " " }) }
                guard let parsed = given.fields.first, given.error == nil else {
                    throw InvalidSettingError(key: "headers", expected: form)
                }
                headers[parsed.name] = parsed.value
            }
        }

        private mutating func readPolicies(_ settings: SettingsReader) async throws {
            decompressesResponses = try await settings.flag("decompressesResponses") ?? decompressesResponses
            if let follows = try await settings.flag("redirects.follows") {
                if follows, !redirects.followsRedirects { redirects.limit = RedirectPolicy.follow().limit }
                redirects.followsRedirects = follows
            }
            redirects.limit = try await settings.number("redirects.limit", atLeast: 0) ?? redirects.limit
            if let attempts = try await settings.number("retry.maximumAttempts", atLeast: 1) {
                // The policy without retries has neither delays nor a budget.
                if retry == .never, attempts > 1 { retry = .transient() }
                retry.maximumAttempts = attempts
            }
            let budget = try await settings.optional("retry.budget", "a number from 0 to 1") { text in
                Double(text).flatMap { (0...1).contains($0) ? $0 : nil }
            }
            if let budget { retry.budget = budget }
            if let limit = try await settings.optionalSeconds("retry.timeLimit") { retry.timeLimit = limit }
        }

        private mutating func readProxy(_ settings: SettingsReader) async throws {
            let expected = "the URL of a proxy, “none”, or “environment”"
            switch try await settings.text("proxy.url", expected, isSecret: true) {
            case nil: break
            case "none"?: proxy = .none
            case "environment"?: proxy = .environment
            case let url?: proxy = try await settings.using("proxy.url", expected) { try ProxySettings.url(url) }
            }
            if let user = try await settings.text("proxy.user", "a user name") {
                let password = try await settings.text("proxy.password", "a password", isSecret: true)
                proxy = proxy.withCredentials(ProxyCredentials(user: user, password: password ?? ""))
            } else {
                try await settings.require("proxy.user", for: "proxy.password", isSecret: true)
            }
            let servers = try await settings.list("proxy.bypass", "a list of host names, networks and “*”")
            if let servers { proxy = proxy.bypassing(servers.joined(separator: ",")) }
        }

        private mutating func readTLS(_ settings: SettingsReader) async throws {
            let version = { (text: String) in ["1.2": TLSVersion.tls12, "1.3": .tls13][text] }
            let versions = "“1.2” or “1.3”"
            tls.minimumVersion = try await settings.value("tls.minimumVersion", versions, version) ?? tls.minimumVersion
            tls.maximumVersion = try await settings.value("tls.maximumVersion", versions, version) ?? tls.maximumVersion
            guard tls.minimumVersion <= tls.maximumVersion else {
                throw InvalidSettingError(key: "tls.minimumVersion", expected: "at most “tls.maximumVersion”")
            }
            let authorities = "a list of PEM files with certificates"
            if let paths = try await settings.list("tls.authorities", authorities) {
                tls.trust.roots = try await settings.using("tls.authorities", authorities) {
                    try await BlockingThreadPool.shared.run { () throws(TLSError) in
                        try paths.map { path throws(TLSError) in try PEMSource.pem(file: path) }
                    }
                }
            }
            tls.trust.usesSystemRoots =
                try await settings.flag("tls.usesSystemAuthorities") ?? tls.trust.usesSystemRoots
            let certificate = "a PEM file with a certificate"
            guard let path = try await settings.text("tls.certificate", certificate) else {
                try await settings.require("tls.certificate", for: "tls.privateKey")
                return try await settings.require("tls.certificate", for: "tls.passphrase", isSecret: true)
            }
            let key = try await settings.text("tls.privateKey", "a PEM file with a private key")
            let passphrase = try await settings.text("tls.passphrase", "the passphrase of the key", isSecret: true)
            let identity = TLSIdentity(
                certificateChain: .file(path), privateKey: key.map { .file($0) }, passphrase: passphrase)
            try await settings.using("tls.certificate", certificate) { try await identity.check() }
            tls.identity = identity
        }

        private mutating func readCache(_ settings: SettingsReader) async throws {
            let memory = try await settings.number("cache.memoryLimit", atLeast: 0).map { ByteCount($0) }
            let expected = "a directory that only its owner can access"
            guard let directory = try await settings.text("cache.directory", expected) else {
                try await settings.require("cache.directory", for: "cache.diskLimit")
                if let memory { cache = .memoryOnly(memory) }
                return
            }
            let disk = try await settings.number("cache.diskLimit", atLeast: 1).map { ByteCount($0) }
            cache = try await settings.using("cache.directory", expected) {
                try await BlockingThreadPool.shared.run {
                    try ResponseCache.at(directory, memory: memory ?? .mebibytes(32), disk: disk ?? .mebibytes(256))
                }
            }
        }
    }
#endif
