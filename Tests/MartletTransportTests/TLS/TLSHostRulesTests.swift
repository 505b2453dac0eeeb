import MartletTestSupport
import Testing

@testable import MartletTransport

@Suite("TLS settings for individual hosts")
struct TLSHostRulesTests {
    private func settings(_ patterns: String...) -> TLSSettings {
        var settings = TLSSettings()
        for pattern in patterns {
            settings.hosts[pattern] = TLSHostSettings(identity: TLSIdentity(certificateChain: .file(pattern)))
        }
        return settings
    }

    /// Returns the pattern of the rule that applies to a host.
    private func pattern(_ settings: TLSSettings, _ host: String) -> String? {
        guard case .pem(let source, _)? = settings.settings(for: host).identity?.material else { return nil }
        return source.description
    }

    @Test(
        "An exact host rule precedes wildcards, and a longer wildcard precedes a shorter one",
        arguments: [
            ("api.example.com", "api.example.com"), ("API.Example.COM.", "api.example.com"),
            ("www.example.com", "*.example.com"), ("a.b.example.com", "*.b.example.com"),
            ("c.a.b.example.com", "*.b.example.com"), ("b.example.com", "*.example.com"),
            ("example.com", nil), ("notexample.com", nil), ("api.example.com.evil.test", nil),
            ("192.0.2.1", "192.0.2.1"), ("192.0.2.2", nil), ("[2001:db8::1]", "[2001:db8::1]"),
            ("2001:db8::1", "[2001:db8::1]"), ("", nil), (".", nil),
        ])
    func patterns(host: String, expected: String?) {
        let settings = settings(
            "api.example.com", "*.example.com", "*.b.example.com", "192.0.2.1", "[2001:db8::1]", "*.0.2.2")
        #expect(pattern(settings, host) == expected)
    }

    // Rules with these patterns once never applied, and neither did their pins and private roots.
    @Test(
        "A rule applies in every spelling of its pattern",
        arguments: [
            ("*.example.com.", "a.example.com"), ("*.Example.COM.", "b.a.example.com."),
            ("a.example.com.", "A.example.com"), ("*.my_zone.example", "a.my_zone.example"),
            ("[2001:DB8::1]", "2001:db8::1"), ("2001:db8:0:0::0001", "[2001:db8::1]"),
            ("2001:db8::1", "[2001:DB8:0::1]"), ("::ffff:192.0.2.1", "::FFFF:c000:201"),
        ])
    func spellings(pattern: String, host: String) {
        let settings = settings(pattern)
        #expect(self.pattern(settings, host) == pattern)
        #expect(settings.hosts[pattern] != nil)
        #expect(settings.hosts.byPattern.count == 1)
    }

    @Test("A pattern that is read back matches the same hosts")
    func byPattern() {
        var rules = TLSHostOverrides()
        rules["*.Example.com."] = TLSHostSettings(verifiesHostName: false)
        rules["[2001:DB8::0:1]"] = TLSHostSettings(verifiesHostName: false)
        #expect(Set(rules.byPattern.keys) == ["*.example.com", "2001:db8::1"])
    }

    @Test("Settings that a rule omits come from the session")
    func inheritance() {
        var settings = TLSSettings(trust: .only(.file("root")), minimumVersion: .tls13)
        settings.identity = TLSIdentity(certificateChain: .file("own"))
        settings.hosts["a.example"] = TLSHostSettings(omitsIdentity: true)
        settings.hosts["b.example"] = TLSHostSettings(
            trust: .system, revocation: .lists(.file("list")), verifiesHostName: false)
        let (a, b) = (settings.settings(for: "a.example"), settings.settings(for: "b.example"))
        #expect(a.identity == nil)
        #expect(a.trust == settings.trust)
        #expect(a.minimumVersion == .tls13)
        #expect(b.identity == settings.identity)
        #expect(b.trust == .system)
        #expect(b.revocation == .lists(.file("list")))
        #expect(!b.verifiesHostName)
        #expect(settings.settings(for: "c.example").trust == settings.trust)
    }

    @Test("A rule is read and removed by its pattern")
    func subscripts() {
        var rules = TLSHostOverrides()
        #expect(rules.isEmpty)
        let rule = TLSHostSettings(verifiesHostName: false)
        rules["*.Example.com"] = rule
        #expect(rules["*.example.COM"] == rule)
        #expect(rules["example.com"] == nil)
        rules["*.example.com"] = nil
        #expect(rules.isEmpty)
    }

    @Test("Only hosts with equal settings share a context and its sessions")
    func contexts() async throws {
        var settings = TLSSettings(trust: try Certificates.authority.get().trust)
        settings.hosts["a.example"] = TLSHostSettings(verifiesHostName: false)
        settings.hosts["b.example"] = TLSHostSettings(verifiesHostName: false)
        settings.hosts["c.example"] = TLSHostSettings(trust: .system)
        let contexts = TLSContextSet(settings: settings)
        let usual = try await contexts.context(for: "x.example")
        #expect(try await contexts.context(for: "y.example") === usual)
        let a = try await contexts.context(for: "a.example")
        #expect(a !== usual)
        #expect(try await contexts.context(for: "b.example") === a)
        #expect(try await contexts.context(for: "c.example") !== a)
        #expect(!a.verifiesHostName)
    }
}
