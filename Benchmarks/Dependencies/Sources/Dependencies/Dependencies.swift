import FoundationEssentials
import HTTPTypes
import Logging
import SystemPackage

/// A program that uses a little of every dependency.
@main
struct Dependencies {
    static func main() async throws {
        let fields = [HTTPField(name: .accept, value: "*/*")]
        let request = HTTPRequest(
            method: .get, scheme: "https", authority: "example.com", path: FilePath("/").string,
            headerFields: HTTPFields(fields))
        let text = try JSONEncoder().encode([request.path ?? ""])
        let paths = try JSONDecoder().decode([String].self, from: text)
        let accept = fields[0].value
        Logger(label: "dependencies").info("\(paths) \(accept)")
    }
}
