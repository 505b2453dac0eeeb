import MartletContent
import MartletURL
import HTTPTypes
import Martlet
@testable import MartletDownloads
import Testing

@testable import MartletCLI

@Suite("Credentials of a download command line")
struct DownloadCredentialsTests {
    private static let mark = HTTPField.Name("X-A") ?? .accept

    private func access(_ words: String...) async throws -> DownloadCredentials {
        var reader = CommandLineParser(
            DownloadCommand.options)
        try reader.read(words)
        let group = reader.groups[0]
        let caller = try await CredentialPlan.load(group)
        var plans: [DownloadPlan] = []
        if !group.urls.isEmpty {
            plans = try DownloadPlan.plans(for: group, lists: [], caller: caller)
        }
        return try DownloadCredentials(plans, group, caller)
    }

    /// A download that was found in a state directory.
    private func found(_ url: String, _ headers: HTTPHeaders = [:]) throws -> DownloadJob.Plan {
        var options = DownloadOptions(headers: headers)
        options.request.usesCookies = false
        return DownloadJob.Plan(url: try HTTPURL(url), target: .directory("/f"), options: options)
    }

    @Test("Without a URL, all stored downloads get the given name, password, headers and cookies")
    func all() async throws {
        let access = try await access(
            "-u", "me:pw", "-H", "X-A: 2", "-H", "Referer:", "-b", "c=1", "-A", "agent")
        var plan = try found("http://h/f", [.accept: "image/*", .init(DownloadCredentialsTests.mark): "1"])
        #expect(access.grant(&plan))
        #expect(plan.options.request.authentication?.credentials != nil)
        #expect(plan.options.headers[DownloadCredentialsTests.mark] == "2")
        #expect(plan.options.headers[.accept] == "image/*" && plan.options.headers[.cookie] == "c=1")
        #expect(plan.options.headers[.userAgent] == "agent")
        #expect(plan.options.request.omittedFields == [.referer])
        #expect(plan.options.request.usesCookies == false)
    }

    @Test("Without credential options, no download gets credentials")
    func nothing() async throws {
        let access = try await access("-s")
        var plan = try found("http://h/f", [.accept: "image/*"])
        #expect(access.grant(&plan))
        #expect(plan.options.headers == [.accept: "image/*"])
        #expect(plan.options.request.authentication == nil)
    }

    @Test("Cookie files apply to all downloads without a URL, and only to the named ones with a URL")
    func cookies() async throws {
        var plan = try found("http://h/f")
        #expect(try await access("-b", "jar").grant(&plan))
        #expect(plan.options.request.usesCookies == true)
        #expect(try await !access("-b", "jar", "http://h/other").grant(&plan))
        #expect(plan.options.request.usesCookies == false)
    }

    @Test("With a URL, other downloads get no credentials, even on the same host")
    func others() async throws {
        let access = try await access("-u", "me:pw", "-H", "Authorization: x", "-b", "c=1", "http://h/g")
        var plan = try found("http://h/f")
        #expect(!access.grant(&plan))
        #expect(plan.options.headers.isEmpty && plan.options.request.authentication == nil)
    }

    @Test("A download whose URL is given gets credential headers and keeps its own other headers")
    func named() async throws {
        let access = try await access(
            "-u", "me:pw", "-H", "Authorization: x", "-H", "Accept: text/plain", "-b", "c=1", "http://h/f")
        var plan = try found("http://h/f", [.accept: "image/*"])
        #expect(access.grant(&plan))
        #expect(plan.options.headers == [.accept: "image/*", .authorization: "x", .cookie: "c=1"])
        #expect(plan.options.request.authentication?.credentials != nil)
    }

    @Test("The user info of a URL applies to that URL only")
    func userInfo() async throws {
        let access = try await access("http://me:pw@h/f")
        var plan = try found("http://h/f")
        #expect(access.grant(&plan))
        #expect(plan.options.request.authentication?.credentials != nil)
        var other = try found("http://h/g")
        #expect(!access.grant(&other))
        #expect(other.options.request.authentication == nil)
    }

    @Test("A URL given twice with different headers gives neither set to a stored download")
    func twice() async throws {
        let access = try await access("-H", "Authorization: x", "http://h/f", "http://h/f")
        var plan = try found("http://h/f")
        #expect(access.grant(&plan))
        #expect(plan.options.headers.isEmpty)
    }
}
