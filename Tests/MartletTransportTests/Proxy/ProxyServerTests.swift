import MartletTransport
import Testing

@Suite("Proxies")
struct ProxyServerTests {
    @Test("Credentials appear in no description")
    func secrecy() {
        let credentials = ProxyCredentials(user: "agent", password: "hunter2")
        let proxy = ProxyServer(kind: .https, host: "::1", port: 3128, credentials: credentials)
        var dumped = ""
        dump(proxy, to: &dumped)
        dump(credentials, to: &dumped)
        for text in ["\(credentials)", String(reflecting: credentials), "\(proxy)", String(reflecting: proxy), dumped] {
            #expect(!text.contains("hunter2") && !text.contains("agent"))
        }
        #expect("\(proxy)" == "https://[::1]:3128")
    }
}
