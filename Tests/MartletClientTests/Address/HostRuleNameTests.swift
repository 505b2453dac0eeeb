@testable import MartletURL
import Martlet
import Testing

@testable import MartletCore
@testable import MartletHosts

@Suite("Names beyond ASCII in TLS settings for single hosts")
struct HostRuleNameTests {
    // Such a rule applied to no host, and with it no pin and no private root.
    @Test(
        "A rule for a name beyond ASCII applies to the host that URLs mean by it",
        arguments: [
            ("bücher.example", "https://bücher.example/"),
            ("BÜCHER.example.", "https://xn--bcher-kva.example/"),
            ("*.bücher.example", "https://a.Bücher.example/"),
            ("xn--bcher-kva.example", "https://bücher.example/"),
        ])
    func names(pattern: String, url: String) throws {
        var configuration = SessionConfiguration.default
        let rule = TLSHostSettings(verifiesHostName: false)
        configuration.tls.hosts[pattern] = rule
        let host = try HTTPURL(url).host
        #expect(configuration.dialSettings.tls.hosts.rule(for: host) == rule)
        #expect(configuration.dialSettings.tls.hosts.rule(for: "other.example") == nil)
    }

    @Test("A rule in ASCII goes before one that is not")
    func both() {
        var configuration = SessionConfiguration.default
        configuration.tls.hosts["bücher.example"] = TLSHostSettings(verifiesHostName: true)
        let rule = TLSHostSettings(verifiesHostName: false)
        configuration.tls.hosts["xn--bcher-kva.example"] = rule
        #expect(configuration.dialSettings.tls.hosts.rule(for: "xn--bcher-kva.example") == rule)
    }
}
