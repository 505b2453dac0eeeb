import DequeModule
import FoundationEssentials
import HTTPTypes
import HeapModule
import Logging
import SystemPackage

/// A program that uses a little of every dependency.
@main
struct Dependencies {
    static func main() async throws {
        var queue: Deque<HTTPField> = [HTTPField(name: .accept, value: "*/*")]
        var times: Heap<Int> = [2, 1]
        let request = HTTPRequest(
            method: .get, scheme: "https", authority: "example.com", path: FilePath("/").string,
            headerFields: HTTPFields(Array(queue)))
        let text = try JSONEncoder().encode([request.path ?? ""])
        let paths = try JSONDecoder().decode([String].self, from: text)
        let accept = queue.popFirst()?.value ?? ""
        Logger(label: "dependencies").info("\(paths) \(accept) \(times.popMin() ?? 0)")
    }
}
