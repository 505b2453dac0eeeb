@testable import MartletURL
import Martlet
import Testing

@testable import MartletCore
@testable import MartletHosts

@Suite("TLS settings for internationalized host names")
struct HostRuleNameTests {
    // Without the conversion, the rule applied to no host and its pins and private roots were ignored.
    @Test(
        "A TLS rule for an internationalized name applies to the host with its A-labels",
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

    @Test("A TLS rule with A-labels has precedence over one with the Unicode name")
    func both() {
        var configuration = SessionConfiguration.default
        configuration.tls.hosts["bücher.example"] = TLSHostSettings(verifiesHostName: true)
        let rule = TLSHostSettings(verifiesHostName: false)
        configuration.tls.hosts["xn--bcher-kva.example"] = rule
        #expect(configuration.dialSettings.tls.hosts.rule(for: "xn--bcher-kva.example") == rule)
    }
}
